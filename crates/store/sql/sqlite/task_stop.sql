-- A running task was told to stop, or a run to end.
update task set stop = ?2 where node = ?1
