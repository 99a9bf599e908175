SELECT EXISTS (SELECT 1 FROM observers WHERE lock = ?1 AND (epoch <> ?2 OR until > ?3));
