-- A running task was told to stop, or a run or loop to end.
update task set stop = ?2, error = coalesce(?3, error) where node = ?1
