-- The part of a new task that never changes.
insert into task_spec (node, body, payload) values (?1, ?2, ?3)
