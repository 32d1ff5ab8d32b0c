-- What such a task gave.
delete from task_output where node = ?1
