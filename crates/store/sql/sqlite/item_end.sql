-- An item is over. Why it was told to stop stays to be seen.
update item
set state = ?3,
    ended = ?4,
    error = ?5,
    due = null,
    worker = null,
    incarnation = null,
    grant_number = null,
    granted = null,
    lease_until = null,
    lease_length = null
where step = ?1 and idx = ?2
