SELECT claim_expires, claim_epoch, ends FROM sightings WHERE lock = ?1 AND ord = ?2 AND epoch = ?3;
