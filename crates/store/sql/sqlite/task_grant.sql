-- A worker got the task. What an earlier attempt was told is not told to this one.
update task
set state = 'running',
    due = null,
    attempts = ?2,
    started = coalesce(started, ?6),
    worker = ?3,
    incarnation = ?4,
    grant_number = ?5,
    granted = ?6,
    lease_until = ?7,
    lease_length = ?8,
    stop = null
where node = ?1
