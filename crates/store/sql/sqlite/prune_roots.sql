-- Roots that succeeded (?1 is 1) or ended otherwise (0) before ?2, oldest end first; those with an idempotency key only
-- if they ended before ?3 too, and none whose steps an open run reuses.
select task.node
from task join task_spec using (node)
where task.parent is null and (task.state = 'succeeded') = ?1 and task.ended < ?2
    and (task_spec.idempotency is null or task.ended < ?3)
    and not exists (
        select 1 from task as step join task as run on run.node = step.parent
        where step.reuses = task.node and run.ended is null
    )
order by task.ended, task.node
limit ?4
