-- How many roots ended before $1; those with an idempotency key count only a while after their end.
select
    (
        select count(*) from tidegate.ended_task
        where parent is null and idempotency is null and ended < $1
    ) + (
        select count(*) from tidegate.ended_task
        where parent is null and idempotency is not null
            and ended < least($1, statement_timestamp() - $2 * interval '1 microsecond')
    )
