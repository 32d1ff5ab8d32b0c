-- How many items of a loop there are, by state, and the first of each.
select state, count(*), min(idx) from (
    select state, idx from tidegate.open_item where step = $1
    union all
    select state, idx from tidegate.ended_item where step = $1
) as item
group by state
