-- The root that a node is or belongs to, open or ended: only roots have an id. Events about a step name its run by it.
with recursive around (node, parent, run_id) as (
    select node, parent, run_id from task where node = ?1
    union all
    select task.node, task.parent, task.run_id from around join task on task.node = around.parent
)
select around.node, around.run_id, task_spec.content
from around join task_spec using (node)
where around.run_id is not null
