-- A root and everything below it, what is below a node before it: who was accepted later has a higher number. The second
-- column says whether it may have items.
with recursive below (node, kind) as (
    select node, kind from task where node = ?1
    union all
    select task.node, task.kind from below join task on task.parent = below.node
)
select node, kind = 'step' from below
order by node desc
