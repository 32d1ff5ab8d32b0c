-- How many items every open loop has, by state. The index by name keeps it away from the steps of history.
select item.step, item.state, item.ended is not null, count(*)
from task indexed by task_open
cross join item on item.step = task.node
where task.ended is null and task.kind = 'step'
group by item.step, item.state, item.ended is not null
