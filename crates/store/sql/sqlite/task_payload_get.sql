-- A job's or step's order, a run's inputs, a loop's list.
select payload from task_spec where node = ?1
