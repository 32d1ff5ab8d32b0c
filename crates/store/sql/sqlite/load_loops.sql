-- How many items every open loop has, by state.
select item.step, item.state, item.ended is not null, count(*)
from task
cross join item on item.step = task.node
where task.ended is null and task.kind = 'step'
group by item.step, item.state, item.ended is not null
