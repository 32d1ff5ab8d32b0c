-- How many items of a loop there are, by state.
select state, count(*) from item where step = ?1 group by state
