SELECT version, kind, bytes, number, span, read_mark, write_mark, touched, keep, epoch FROM cells WHERE name = ?1;
