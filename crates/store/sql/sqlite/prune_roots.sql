-- Roots that succeeded (?1 is 1) or ended otherwise (0) before ?2, oldest end first; those with an idempotency key only
-- if they ended before ?3 too.
select task.node
from task join task_spec using (node)
where task.parent is null and (task.state = 'succeeded') = ?1 and task.ended < ?2
    and (task_spec.idempotency is null or task.ended < ?3)
order by task.ended, task.node
limit ?4
