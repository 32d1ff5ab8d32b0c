-- How many roots succeeded (?1 is 1) or ended otherwise (0) before ?2; those with an idempotency key count only if they
-- ended before ?3 too, and those whose steps an open run reuses do not.
select count(*)
from task join task_spec using (node)
where task.parent is null and (task.state = 'succeeded') = ?1 and task.ended < ?2
    and (task_spec.idempotency is null or task.ended < ?3)
    and not exists (
        select 1 from task as step join task as run on run.node = step.parent
        where step.reuses = task.node and run.ended is null
    )
