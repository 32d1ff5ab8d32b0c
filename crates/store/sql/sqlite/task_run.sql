-- A worker got the task and it is over. What an earlier attempt was told is not told to this one.
update task
set state = ?2,
    ended = ?3,
    error = ?4,
    attempts = ?5,
    started = coalesce(started, ?6),
    due = null,
    worker = null,
    incarnation = null,
    grant_number = null,
    granted = null,
    lease_until = null,
    lease_length = null,
    stop = null
where node = ?1
