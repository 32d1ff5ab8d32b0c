-- A task stands elsewhere in line.
update task set priority = ?2, root = ?3 where node = ?1
