-- A worker got the item. What an earlier attempt was told is not told to this one.
update item
set state = 'running',
    due = null,
    attempts = ?3,
    started = coalesce(started, ?7),
    worker = ?4,
    incarnation = ?5,
    grant_number = ?6,
    granted = ?7,
    lease_until = ?8,
    lease_length = ?9,
    stop = null
where step = ?1 and idx = ?2
