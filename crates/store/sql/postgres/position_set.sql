-- The tables hold what happened up to this entry, in the transaction that made it so.
update tidegate.position set sequence = $1, next = $2, now = $3, digest = $4
