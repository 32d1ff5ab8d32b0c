-- Open items of open loops. The planner would rather walk all steps of history, hence the index by name.
select
    item.state, item.due, item.attempts, item.failures, item.losses, item.worker, item.incarnation,
    item.grant_number, item.granted, item.lease_until, item.lease_length, item.stop, 0, item.started,
    0, item.ended, item.error,
    item.step, item.idx, item.key
from task indexed by task_open
cross join item on item.step = task.node
where task.ended is null and task.kind = 'step' and item.ended is null
order by item.step, item.idx
