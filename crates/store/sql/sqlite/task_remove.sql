-- The narrow part of a task that is history nobody wants.
delete from task where node = ?1
