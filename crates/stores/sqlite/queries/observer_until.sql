SELECT until FROM observers WHERE lock = ?1 AND epoch = ?2;
