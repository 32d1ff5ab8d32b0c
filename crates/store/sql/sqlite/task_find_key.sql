-- The latest root that was accepted under an idempotency key, open or ended.
select task.node, task.run_id, task_spec.content
from task_spec join task using (node)
where task_spec.idempotency = ?1
order by task.node desc
limit 1
