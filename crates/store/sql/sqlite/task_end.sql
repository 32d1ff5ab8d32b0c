-- A task is over. Why it was told to stop stays to be seen.
update task
set state = ?2,
    ended = ?3,
    error = ?4,
    due = null,
    worker = null,
    incarnation = null,
    grant_number = null,
    granted = null,
    lease_until = null,
    lease_length = null
where node = ?1
