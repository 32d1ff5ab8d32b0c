-- Letters after one, in the order of their numbers, and how large they are.
select number, size from tidegate.mailbox
where number > $1 and problem is null
order by number
limit $2
