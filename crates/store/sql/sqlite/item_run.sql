-- A worker got the item and it is over. What an earlier attempt was told is not told to this one.
update item
set state = ?3,
    ended = ?4,
    error = ?5,
    attempts = ?6,
    started = coalesce(started, ?7),
    due = null,
    worker = null,
    incarnation = null,
    grant_number = null,
    granted = null,
    lease_until = null,
    lease_length = null,
    stop = null
where step = ?1 and idx = ?2
