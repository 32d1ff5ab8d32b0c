-- What happened to open tasks that stay open. A null keeps what is there, except where a column of its own says that
-- null is meant.
update tidegate.open_task as task
set state = coalesce(change.state, task.state),
    attempts = coalesce(change.attempts, task.attempts),
    failures = coalesce(change.failures, task.failures),
    losses = coalesce(change.losses, task.losses),
    started = coalesce(task.started, change.started),
    due = case when change.sets_due then change.due else task.due end,
    stop = case when change.sets_stop then change.stop else task.stop end,
    error = case when change.sets_error then change.error else task.error end,
    worker = case when change.sets_grant then change.worker else task.worker end,
    incarnation = case when change.sets_grant then change.incarnation else task.incarnation end,
    grant_number = case when change.sets_grant then change.grant_number else task.grant_number end,
    granted = case when change.sets_grant then change.granted else task.granted end,
    lease_until = case when change.sets_grant then change.lease_until else task.lease_until end,
    lease_length = case when change.sets_grant then change.lease_length else task.lease_length end,
    paused = coalesce(change.paused, task.paused),
    -- A step that waits is past the limit of its run; a root that waits holds nothing.
    entered = case change.entered when 'yes' then true when 'if_step' then task.kind = 'step' else task.entered end,
    priority = coalesce(change.priority, task.priority),
    root = coalesce(change.root, task.root)
from unnest(
    $1::bigint[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::timestamptz[], $7::boolean[], $8::timestamptz[],
    $9::boolean[], $10::text[], $11::boolean[], $12::text[], $13::boolean[], $14::text[], $15::bigint[], $16::bigint[],
    $17::timestamptz[], $18::timestamptz[], $19::bigint[], $20::boolean[], $21::text[], $22::smallint[], $23::bigint[]
) as change (
    node, state, attempts, failures, losses, started, sets_due, due, sets_stop, stop, sets_error, error, sets_grant,
    worker, incarnation, grant_number, granted, lease_until, lease_length, paused, entered, priority, root
)
where task.node = change.node
