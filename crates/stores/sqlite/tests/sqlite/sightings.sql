SELECT count(*) FROM sightings;
