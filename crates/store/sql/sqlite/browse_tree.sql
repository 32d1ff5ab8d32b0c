-- A root and everything below it.
with recursive part (node) as (
    select ?1
    union all
    select task.node from part cross join task on task.parent = part.node
)
select
    task.state, task.due, task.attempts, task.failures, task.losses, task.worker, task.incarnation,
    task.grant_number, task.granted, task.lease_until, task.lease_length, task.stop, task.paused, task.started,
    task.entered, task.ended, task.error,
    task.node, task.parent, task.root, task.priority, task.accepted, task_spec.body, null
from part
cross join task on task.node = part.node
cross join task_spec on task_spec.node = task.node
order by task.node
