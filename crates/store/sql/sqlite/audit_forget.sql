-- What is too old to be asked for.
delete from audit where at < ?1
