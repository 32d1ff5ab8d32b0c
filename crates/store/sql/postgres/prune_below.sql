-- What is below roots, root by root, and below a node before it: who was accepted later has a higher number. The last
-- column says whether it has items.
with recursive below (root, node, kind) as (
    select root, root, 'run' from unnest($1::bigint[]) as root
    union all
    select below.root, task.node, task.kind from below cross join lateral (
        select node, kind from tidegate.ended_task where ended_task.parent = below.node offset 0
    ) as task
)
select root, node, kind = 'step' and (
    exists (select from tidegate.ended_item where ended_item.step = below.node)
    or exists (select from tidegate.open_item where open_item.step = below.node)
)
from below
where node <> root
order by root, node desc
