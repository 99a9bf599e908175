INSERT INTO cells (name, version, kind, bytes, number, span, read_mark, write_mark, touched, keep, epoch, ends)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
ON CONFLICT (name) DO UPDATE SET
    version = ?2, kind = ?3, bytes = ?4, number = ?5, span = ?6, read_mark = ?7, write_mark = ?8,
    touched = ?9, keep = ?10, epoch = ?11, ends = ?12;
