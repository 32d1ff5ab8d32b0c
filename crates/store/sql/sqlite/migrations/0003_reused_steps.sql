-- The run in which a step ended, if that was another one: it stays while the run that this step belongs to is open.
alter table task add column reuses integer;

-- Few steps are reused, so it is small.
create index task_reuses on task (reuses) where reuses is not null;
