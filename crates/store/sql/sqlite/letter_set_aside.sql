-- A letter that cannot be read stays to be looked at.
update mailbox set problem = ?2 where number = ?1
