-- How many items every open loop has: those that ended by their state, the others under a null.
select item.step, item.state, count(*)
from tidegate.open_task as step
cross join lateral (
    select ended_item.step, ended_item.state from tidegate.ended_item where ended_item.step = step.node
    union all
    select open_item.step, null from tidegate.open_item where open_item.step = step.node
) as item
where step.kind = 'step'
group by item.step, item.state
