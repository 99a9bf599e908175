REPLACE INTO claims (lock, ord, id, owner, host, pid, label, kind, weight, capacity,
                     entered, held_since, lease, expires, epoch, left, note)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17);
