-- What these letters say, in the order of their numbers.
select number, id, content::text from tidegate.mailbox where number = any($1) order by number
