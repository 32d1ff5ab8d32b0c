-- A letter that cannot be read stays to be looked at.
update tidegate.mailbox set problem = $2 where number = $1
