-- Tasks that were accepted and ended since the tables were last brought up to date: one row each, straight into history.
insert into tidegate.ended_task (
    node, parent, kind, name, step_index, id, idempotency, content, tags, state, priority, root, accepted, started, ended,
    attempts, failures, losses, stop, paused, entered, error, body, payload, output, reuses
)
select
    node, parent, kind, name, step_index, id, idempotency, content, tags::json, state, priority, root, accepted, started,
    ended, attempts, failures, losses, stop, paused, entered, error, body, payload, output, reuses
from unnest(
    $1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::bigint[], $6::uuid[], $7::text[], $8::bigint[], $9::text[],
    $10::text[], $11::smallint[], $12::bigint[], $13::timestamptz[], $14::timestamptz[], $15::timestamptz[],
    $16::bigint[], $17::bigint[], $18::bigint[], $19::text[], $20::boolean[], $21::boolean[], $22::text[], $23::bytea[],
    $24::bytea[], $25::bytea[], $26::bigint[]
) as task (
    node, parent, kind, name, step_index, id, idempotency, content, tags, state, priority, root, accepted, started, ended,
    attempts, failures, losses, stop, paused, entered, error, body, payload, output, reuses
)
