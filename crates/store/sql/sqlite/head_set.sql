-- The last entry, in the transaction that made its writes.
update head set sequence = ?1, batch = ?2, next = ?3, now = ?4, digest = ?5
