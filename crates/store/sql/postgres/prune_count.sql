-- How many roots succeeded ($1) or ended otherwise before $2; those with an idempotency key count only a while after
-- their end, and those whose steps an open run reuses do not.
select count(*)
from (
    values (true, $2::timestamptz), (false, least($2, statement_timestamp() - $3 * interval '1 microsecond'))
) as old (keyless, before)
join tidegate.ended_task
    on parent is null and (state = 'succeeded') = $1 and (idempotency is null) = old.keyless and ended < old.before
where not exists (
    select from tidegate.ended_task as step join tidegate.open_task as run on run.node = step.parent
    where step.reuses = ended_task.node
)
