-- The root that a node is or belongs to, open or ended: only roots have an id. Events about a step name its run by it.
with recursive around (node, parent, id, content) as (
    select node, parent, id, content from (
        select node, parent, id, content from tidegate.open_task where node = $1
        union all
        select node, parent, id, content from tidegate.ended_task where node = $1
    ) as part
    union all
    select above.node, above.parent, above.id, above.content
    from around
    cross join lateral (
        select node, parent, id, content from tidegate.open_task where node = around.parent
        union all
        select node, parent, id, content from tidegate.ended_task where node = around.parent
    ) as above
)
select node, id, content from around where id is not null
