-- In line again, or until a time. A move that is nobody's fault leaves the last error to be seen.
update item
set state = ?3,
    due = ?4,
    attempts = ?5,
    failures = ?6,
    losses = ?7,
    error = coalesce(?8, error),
    worker = null,
    incarnation = null,
    grant_number = null,
    granted = null,
    lease_until = null,
    lease_length = null,
    stop = null
where step = ?1 and idx = ?2
