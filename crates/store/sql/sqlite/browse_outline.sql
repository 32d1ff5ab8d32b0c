-- A root and, of a run, its own steps.
select
    task.state, task.due, task.attempts, task.failures, task.losses, task.worker, task.incarnation,
    task.grant_number, task.granted, task.lease_until, task.lease_length, task.stop, task.paused, task.started,
    task.entered, task.ended, task.error,
    task.node, task.parent, task.root, task.priority, task.accepted, task_spec.body, null
from task
cross join task_spec on task_spec.node = task.node
where task.node = ?1 or task.parent = ?1
order by task.node
