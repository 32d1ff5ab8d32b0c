-- The root that was accepted under an id, open or ended: a repeated submission must find it.
select task.node, task.run_id, task_spec.content
from task join task_spec using (node)
where task.run_id = ?1
order by task.node desc
limit 1
