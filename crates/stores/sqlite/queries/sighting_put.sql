REPLACE INTO sightings (lock, ord, epoch, claim_expires, claim_epoch, ends) VALUES (?1, ?2, ?3, ?4, ?5, ?6);
