DELETE FROM cells WHERE rowid IN
    (SELECT rowid FROM cells WHERE epoch = ?1 AND ends IS NOT NULL AND ends <= ?2 LIMIT ?3);
