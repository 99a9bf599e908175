SELECT (SELECT count(*) FROM claims) + (SELECT count(*) FROM cells) + (SELECT count(*) FROM sightings)
     + (SELECT count(*) FROM observers);
