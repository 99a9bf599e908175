SELECT ord, id, owner, host, pid, label, kind, weight, capacity, entered, held_since, lease, expires, epoch, left, note
FROM claims WHERE lock = ?1 ORDER BY ord;
