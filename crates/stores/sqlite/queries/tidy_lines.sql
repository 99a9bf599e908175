-- Lines that nobody came by for a while: with claims that ended before ?2, or of another epoch.
SELECT DISTINCT lock FROM claims WHERE (epoch = ?1 AND expires <= ?2) OR epoch <> ?1 LIMIT ?3;
