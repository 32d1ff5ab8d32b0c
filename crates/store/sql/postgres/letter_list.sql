-- Letters after one, in the order of their numbers.
select number, id, content::text from tidegate.mailbox
where number > $1 and problem is null
order by number
limit $2
