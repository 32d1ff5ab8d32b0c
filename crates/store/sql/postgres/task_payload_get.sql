-- A job's or step's order, a run's inputs, a loop's list.
select payload from tidegate.open_task where node = $1
union all
select payload from tidegate.ended_task where node = $1
