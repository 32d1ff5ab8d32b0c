-- The order of an item.
select payload from tidegate.open_item where step = $1 and idx = $2
union all
select payload from tidegate.ended_item where step = $1 and idx = $2
