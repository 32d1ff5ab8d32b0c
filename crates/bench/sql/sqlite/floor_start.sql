-- A job begins.
update job set state = 'running', started = ?2 where id = ?1
