-- How many roots ended before $1; those with an idempotency key count only a while after their end.
select count(*) from tidegate.ended_task
where parent is null and ended < $1
    and (idempotency is null or ended < clock_timestamp() - $2 * interval '1 microsecond')
