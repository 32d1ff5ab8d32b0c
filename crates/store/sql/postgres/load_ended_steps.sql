-- How the steps of open runs ended: later steps depend on it.
select
    step.state, step.attempts, step.failures, step.losses, step.stop, step.started, step.error, null::timestamptz,
    null::text, null::bigint, null::bigint, null::timestamptz, null::timestamptz, null::bigint, step.paused, step.entered,
    step.ended, step.node, step.parent, step.root, step.priority, step.accepted, step.body,
    case when octet_length(step.payload) <= $1 then step.payload end
from tidegate.open_task as run
cross join lateral (
    select * from tidegate.ended_task where ended_task.parent = run.node and ended_task.kind = 'step' offset 0
) as step
where run.kind = 'run'
