-- Roots that succeeded ($1) or ended otherwise before $2, oldest end first; those with an idempotency key only a while
-- after their end, which is why they are looked for apart. Only jobs have nothing below them. What another server deletes
-- at this moment is left to it. Runs whose steps an open run reuses stay, and so do those of $5: what reuses them is not
-- in the tables yet.
select root.node, root.kind = 'job'
from (
    values (true, $2::timestamptz), (false, least($2, statement_timestamp() - $3 * interval '1 microsecond'))
) as old (keyless, before)
cross join lateral (
    select node, kind, ended from tidegate.ended_task
    where parent is null and (state = 'succeeded') = $1 and (idempotency is null) = old.keyless and ended < old.before
        and node <> all ($5::bigint[])
        and not exists (
            select from tidegate.ended_task as step join tidegate.open_task as run on run.node = step.parent
            where step.reuses = ended_task.node
        )
    order by ended, node
    limit $4
    for update skip locked
) as root
order by root.ended, root.node
limit $4
