DELETE FROM claims WHERE lock = ?1 AND ord = ?2;
