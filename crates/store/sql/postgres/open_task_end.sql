-- Open tasks that ended move to history, with whatever else happened to them before.
with gone as (
    delete from tidegate.open_task as task
    using unnest(
        $1::bigint[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::timestamptz[], $7::boolean[], $8::text[],
        $9::text[], $10::boolean[], $11::text[], $12::smallint[], $13::bigint[], $14::timestamptz[], $15::bytea[]
    ) as change (
        node, state, attempts, failures, losses, started, sets_stop, stop,
        error, paused, entered, priority, root, ended, output
    )
    where task.node = change.node
    returning
        task.node, task.parent, task.kind, task.name, task.step_index, task.id, task.idempotency, task.content,
        task.tags, change.state, coalesce(change.priority, task.priority) as priority,
        coalesce(change.root, task.root) as root, task.accepted,
        coalesce(task.started, change.started) as started, change.ended,
        coalesce(change.attempts, task.attempts) as attempts, coalesce(change.failures, task.failures) as failures,
        coalesce(change.losses, task.losses) as losses,
        case when change.sets_stop then change.stop else task.stop end as stop,
        coalesce(change.paused, task.paused) as paused,
        case change.entered when 'yes' then true when 'if_step' then task.kind = 'step' else task.entered end as entered,
        change.error, task.body, task.payload, change.output
)
insert into tidegate.ended_task (
    node, parent, kind, name, step_index, id, idempotency, content, tags, state, priority, root, accepted, started, ended,
    attempts, failures, losses, stop, paused, entered, error, body, payload, output
)
select
    node, parent, kind, name, step_index, id, idempotency, content, tags, state, priority, root, accepted, started, ended,
    attempts, failures, losses, stop, paused, entered, error, body, payload, output
from gone
