-- Nothing of it starts, or may start again.
update task set paused = ?2 where node = ?1
