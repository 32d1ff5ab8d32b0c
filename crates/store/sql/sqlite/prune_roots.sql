-- Roots that ended before ?1, oldest end first; those with an idempotency key only if they ended before ?2 too.
select task.node
from task join task_spec using (node)
where task.parent is null and task.ended < ?1 and (task_spec.idempotency is null or task.ended < ?2)
order by task.ended, task.node
limit ?3
