-- A token is revoked.
delete from tidegate.token where id = $1
