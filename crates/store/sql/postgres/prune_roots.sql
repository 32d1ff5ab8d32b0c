-- Roots that ended before $1, oldest end first; those with an idempotency key only a while after their end, which is why
-- they have an index of their own. Only jobs have nothing below them. What another server deletes at this moment is left
-- to it.
with keyless as (
    select node, kind, ended from tidegate.ended_task
    where parent is null and idempotency is null and ended < $1
    order by ended, node
    limit $3
    for update skip locked
),
keyed as (
    select node, kind, ended from tidegate.ended_task
    where parent is null and idempotency is not null
        and ended < least($1, statement_timestamp() - $2 * interval '1 microsecond')
    order by ended, node
    limit $3
    for update skip locked
)
select node, kind = 'job' from (select * from keyless union all select * from keyed) as root
order by ended, node
limit $3
