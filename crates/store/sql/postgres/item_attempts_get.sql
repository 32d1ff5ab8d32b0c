-- How often the items of a range were started.
select idx, attempts from tidegate.open_item where step = $1 and idx >= $2 and idx < $3
union all
select idx, attempts from tidegate.ended_item where step = $1 and idx >= $2 and idx < $3
