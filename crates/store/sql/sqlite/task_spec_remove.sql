-- The part of such a task that never changed.
delete from task_spec where node = ?1
