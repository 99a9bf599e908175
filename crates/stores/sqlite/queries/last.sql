UPDATE meta SET last = ?1 WHERE one = 1;
