DELETE FROM sightings WHERE lock = ?1 AND ord = ?2;
