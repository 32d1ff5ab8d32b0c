-- Everything open between two numbers. Small payloads come along.
select
    task.state, task.due, task.attempts, task.failures, task.losses, task.worker, task.incarnation,
    task.grant_number, task.granted, task.lease_until, task.lease_length, task.stop, task.paused, task.started,
    task.entered, task.ended, task.error,
    task.node, task.parent, task.root, task.priority, task.accepted, task_spec.body,
    case when octet_length(task_spec.payload) <= ?1 then task_spec.payload end
from task
cross join task_spec on task_spec.node = task.node
where task.ended is null and task.node between ?2 and ?3
order by task.node
