-- The part of a new task that never changes.
insert into task_spec (node, idempotency, content, body, payload) values (?1, ?2, ?3, ?4, ?5)
