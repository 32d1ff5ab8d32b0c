-- How many items of a loop there are, by state, and the first of each.
select state, count(*), min(idx) from item where step = ?1 group by state
