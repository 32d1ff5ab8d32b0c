-- What was submitted, newest first.
select * from (
    (select
        state, attempts, failures, losses, stop, started, error, due, worker, incarnation, grant_number, granted, lease_until,
        lease_length, paused, entered, null::timestamptz, node, parent, root, priority, accepted, body, null::bytea
    from tidegate.open_task
    where parent is null and node < $1 and ($2::text is null or state = $2) and ($3::text is null or name = $3)
    order by node desc
    limit $4)
    union all
    (select
        state, attempts, failures, losses, stop, started, error, null, null, null, null, null, null,
        null, paused, entered, ended, node, parent, root, priority, accepted, body, null
    from tidegate.ended_task
    where parent is null and node < $1 and ($2::text is null or state = $2) and ($3::text is null or name = $3)
    order by node desc
    limit $4)
) as task
order by node desc
limit $4
