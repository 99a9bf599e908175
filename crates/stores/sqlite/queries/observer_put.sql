REPLACE INTO observers (lock, epoch, until) VALUES (?1, ?2, ?3);
