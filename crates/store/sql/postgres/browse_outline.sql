-- A root and, of a run, its own steps.
select
    state, attempts, failures, losses, stop, started, error, due, worker, incarnation, grant_number, granted, lease_until,
    lease_length, paused, entered, null::timestamptz, node, parent, root, priority, accepted, body, null::bytea
from tidegate.open_task
where node = $1 or parent = $1
union all
select
    state, attempts, failures, losses, stop, started, error, null, null, null, null, null, null,
    null, paused, entered, ended, node, parent, root, priority, accepted, body, null
from tidegate.ended_task
where node = $1 or parent = $1
