-- What was submitted, newest first.
select
    task.state, task.due, task.attempts, task.failures, task.losses, task.worker, task.incarnation,
    task.grant_number, task.granted, task.lease_until, task.lease_length, task.stop, task.paused, task.started,
    task.entered, task.ended, task.error,
    task.node, task.parent, task.root, task.priority, task.accepted, task_spec.body, null
from task
cross join task_spec on task_spec.node = task.node
where task.parent is null and task.node < ?1 and (?2 is null or task.state = ?2) and (?3 is null or task.name = ?3)
order by task.node desc
limit ?4
