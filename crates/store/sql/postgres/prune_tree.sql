-- Roots and everything below them; how many rows that were. Rows are looked up by an array and not joined: nobody knows
-- how few of all items are meant.
with recursive below (node) as (
    select unnest($1::bigint[])
    union all
    select task.node from below cross join lateral (
        select node from tidegate.ended_task where ended_task.parent = below.node offset 0
    ) as task
),
tasks as (
    delete from tidegate.ended_task where node = any (array(select node from below)) returning 1
),
open_items as (
    delete from tidegate.open_item where step = any (array(select node from below)) returning 1
),
ended_items as (
    delete from tidegate.ended_item where step = any (array(select node from below)) returning 1
)
select
    (select count(*) from tasks) + (select count(*) from open_items) + (select count(*) from ended_items)
