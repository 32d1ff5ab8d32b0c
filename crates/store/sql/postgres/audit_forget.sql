-- What is too old to be asked for.
delete from tidegate.audit where at < $1
