-- How many roots ended before ?1; those with an idempotency key count only if they ended before ?2 too.
select count(*)
from task join task_spec using (node)
where task.parent is null and task.ended < ?1 and (task_spec.idempotency is null or task.ended < ?2)
