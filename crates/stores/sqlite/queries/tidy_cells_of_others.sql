-- Cells of another epoch count their time from now on in ours.
UPDATE cells SET epoch = ?1, touched = ?2, ends = ?2 + min(keep, 9223372036854775807 - ?2) WHERE rowid IN
    (SELECT rowid FROM cells WHERE epoch <> ?1 AND ends IS NOT NULL LIMIT ?3);
