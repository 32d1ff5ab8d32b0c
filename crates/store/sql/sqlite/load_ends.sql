-- The lowest and the highest number of what is open.
select
    (select node from task where ended is null order by node limit 1),
    (select node from task where ended is null order by node desc limit 1)
