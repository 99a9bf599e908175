DELETE FROM cells WHERE name = ?1;
