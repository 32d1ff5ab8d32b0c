-- Tasks that were accepted and have not ended.
insert into tidegate.open_task (
    node, parent, kind, name, step_index, id, idempotency, content, tags, state, priority, root, accepted, due, started,
    attempts, failures, losses, worker, incarnation, grant_number, granted, lease_until, lease_length, stop, paused,
    entered, error, body, payload
)
select
    node, parent, kind, name, step_index, id, idempotency, content, tags::json, state, priority, root, accepted, due,
    started, attempts, failures, losses, worker, incarnation, grant_number, granted, lease_until, lease_length, stop,
    paused, entered, error, body, payload
from unnest(
    $1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::bigint[], $6::uuid[], $7::text[], $8::bigint[], $9::text[],
    $10::text[], $11::smallint[], $12::bigint[], $13::timestamptz[], $14::timestamptz[], $15::timestamptz[],
    $16::bigint[], $17::bigint[], $18::bigint[], $19::text[], $20::bigint[], $21::bigint[], $22::timestamptz[],
    $23::timestamptz[], $24::bigint[], $25::text[], $26::boolean[], $27::boolean[], $28::text[], $29::bytea[],
    $30::bytea[]
) as task (
    node, parent, kind, name, step_index, id, idempotency, content, tags, state, priority, root, accepted, due, started,
    attempts, failures, losses, worker, incarnation, grant_number, granted, lease_until, lease_length, stop, paused,
    entered, error, body, payload
)
