-- How many items of a loop there are, by state.
select state, count(*) from (
    select state from tidegate.open_item where step = $1
    union all
    select state from tidegate.ended_item where step = $1
) as item
group by state
