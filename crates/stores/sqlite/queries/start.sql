SELECT last, EXISTS (SELECT 1 FROM sightings), EXISTS (SELECT 1 FROM observers) FROM meta WHERE one = 1;
