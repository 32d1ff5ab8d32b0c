-- How often a task was started that is open or was a moment ago.
select attempts from tidegate.open_task where node = $1
union all
select attempts from tidegate.ended_task where node = $1
