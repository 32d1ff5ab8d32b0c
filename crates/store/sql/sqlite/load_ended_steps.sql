-- How the steps of open runs ended: later steps depend on it. Small payloads come along.
select
    step.state, step.due, step.attempts, step.failures, step.losses, step.worker, step.incarnation,
    step.grant_number, step.granted, step.lease_until, step.lease_length, step.stop, step.paused, step.started,
    step.entered, step.ended, step.error,
    step.node, step.parent, step.root, step.priority, step.accepted, task_spec.body,
    case when octet_length(task_spec.payload) <= ?1 then task_spec.payload end
from task as run
cross join task as step on step.parent = run.node and step.kind = 'step'
cross join task_spec on task_spec.node = step.node
where run.ended is null and run.kind = 'run' and step.ended is not null
