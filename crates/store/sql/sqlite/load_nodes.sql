-- Everything open, and how the steps of open runs ended: later steps depend on it. Small payloads come along.
with wanted (node) as (
    select node from task where ended is null
    union all
    select step.node
    from task as run
    cross join task as step on step.parent = run.node and step.kind = 'step'
    where run.ended is null and run.kind = 'run' and step.ended is not null
)
select
    task.state, task.due, task.attempts, task.failures, task.losses, task.worker, task.incarnation,
    task.grant_number, task.granted, task.lease_until, task.lease_length, task.stop, task.paused, task.started,
    task.entered, task.ended, task.error,
    task.node, task.parent, task.root, task.priority, task.accepted, task_spec.body,
    case when octet_length(task_spec.payload) <= ?1 then task_spec.payload end
from wanted
cross join task on task.node = wanted.node
cross join task_spec on task_spec.node = wanted.node
order by wanted.node
