-- What a task gave.
insert or replace into task_output (node, output) values (?1, ?2)
