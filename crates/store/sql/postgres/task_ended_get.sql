-- How a task ended.
select state, output, error, attempts from tidegate.ended_task where node = $1
