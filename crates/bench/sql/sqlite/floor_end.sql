-- A job is over.
update job set state = 'succeeded', ended = ?2 where id = ?1
