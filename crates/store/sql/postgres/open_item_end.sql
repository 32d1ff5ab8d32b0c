-- Open items that ended move to history, with whatever else happened to them before.
with gone as (
    delete from tidegate.open_item as item
    using unnest(
        $1::bigint[], $2::bigint[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::timestamptz[],
        $8::boolean[], $9::text[], $10::text[], $11::timestamptz[], $12::bytea[]
    ) as change (
        step, idx, state, attempts, failures, losses, started,
        sets_stop, stop, error, ended, output
    )
    where item.step = change.step and item.idx = change.idx
    returning
        item.step, item.idx, item.key, change.state, item.accepted,
        coalesce(item.started, change.started) as started, change.ended,
        coalesce(change.attempts, item.attempts) as attempts, coalesce(change.failures, item.failures) as failures,
        coalesce(change.losses, item.losses) as losses,
        case when change.sets_stop then change.stop else item.stop end as stop,
        change.error, item.payload, change.output
)
insert into tidegate.ended_item (
    step, idx, key, state, accepted, started, ended, attempts, failures, losses, stop, error, payload, output
)
select * from gone
