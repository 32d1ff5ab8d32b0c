-- Roots and everything below them; how many rows that were.
with recursive below (node) as (
    select unnest($1::bigint[])
    union all
    select task.node from below cross join lateral (
        select node from tidegate.ended_task where ended_task.parent = below.node offset 0
    ) as task
),
tasks as (
    delete from tidegate.ended_task using below where ended_task.node = below.node returning 1
),
open_items as (
    delete from tidegate.open_item using below where open_item.step = below.node returning 1
),
ended_items as (
    delete from tidegate.ended_item using below where ended_item.step = below.node returning 1
)
select
    (select count(*) from tasks) + (select count(*) from open_items) + (select count(*) from ended_items)
