-- Items of a loop ended alike without starting: one statement for the whole range.
update item
set state = ?4,
    ended = ?5,
    error = null,
    due = null,
    worker = null,
    incarnation = null,
    grant_number = null,
    granted = null,
    lease_until = null,
    lease_length = null
where step = ?1 and idx >= ?2 and idx < ?3
