-- Open items of open loops.
select
    item.state, item.attempts, item.failures, item.losses, item.stop, item.started, item.error, item.due, item.worker,
    item.incarnation, item.grant_number, item.granted, item.lease_until, item.lease_length, false, false,
    null::timestamptz, item.step, item.idx, item.key
from tidegate.open_item as item
where exists (select from tidegate.open_task where open_task.node = item.step)
order by item.step, item.idx
