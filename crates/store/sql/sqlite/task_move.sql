-- In line again, or until a time. A move that is nobody's fault leaves the last error to be seen.
update task
set state = ?2,
    due = ?3,
    attempts = ?4,
    failures = ?5,
    losses = ?6,
    error = coalesce(?7, error),
    worker = null,
    incarnation = null,
    grant_number = null,
    granted = null,
    lease_until = null,
    lease_length = null,
    stop = null
where node = ?1
