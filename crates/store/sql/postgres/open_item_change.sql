-- What happened to open items that stay open; see open_task_change.
update tidegate.open_item as item
set state = coalesce(change.state, item.state),
    attempts = coalesce(change.attempts, item.attempts),
    failures = coalesce(change.failures, item.failures),
    losses = coalesce(change.losses, item.losses),
    started = coalesce(item.started, change.started),
    due = case when change.sets_due then change.due else item.due end,
    stop = case when change.sets_stop then change.stop else item.stop end,
    error = case when change.sets_error then change.error else item.error end,
    worker = case when change.sets_grant then change.worker else item.worker end,
    incarnation = case when change.sets_grant then change.incarnation else item.incarnation end,
    grant_number = case when change.sets_grant then change.grant_number else item.grant_number end,
    granted = case when change.sets_grant then change.granted else item.granted end,
    lease_until = case when change.sets_grant then change.lease_until else item.lease_until end,
    lease_length = case when change.sets_grant then change.lease_length else item.lease_length end
from unnest(
    $1::bigint[], $2::bigint[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::timestamptz[], $8::boolean[],
    $9::timestamptz[], $10::boolean[], $11::text[], $12::boolean[], $13::text[], $14::boolean[], $15::text[],
    $16::bigint[], $17::bigint[], $18::timestamptz[], $19::timestamptz[], $20::bigint[]
) as change (
    step, idx, state, attempts, failures, losses, started, sets_due, due, sets_stop, stop, sets_error, error, sets_grant,
    worker, incarnation, grant_number, granted, lease_until, lease_length
)
where item.step = change.step and item.idx = change.idx
