-- A root and everything below it.
with recursive part (node) as (
    select $1::bigint
    union all
    select child.node from part
    cross join lateral (
        select node from tidegate.open_task where open_task.parent = part.node
        union all
        select node from tidegate.ended_task where ended_task.parent = part.node
    ) as child
)
select
    state, attempts, failures, losses, stop, started, error, due, worker, incarnation, grant_number, granted, lease_until,
    lease_length, paused, entered, null::timestamptz, task.node, parent, root, priority, accepted, body, null::bytea
from part join tidegate.open_task as task on task.node = part.node
union all
select
    state, attempts, failures, losses, stop, started, error, null, null, null, null, null, null,
    null, paused, entered, ended, task.node, parent, root, priority, accepted, body, null
from part join tidegate.ended_task as task on task.node = part.node
