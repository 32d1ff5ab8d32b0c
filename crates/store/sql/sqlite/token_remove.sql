-- A token is revoked.
delete from token where id = ?1
