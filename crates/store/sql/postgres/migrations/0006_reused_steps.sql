-- A run stays while another one that reuses its steps is open.

alter table tidegate.ended_task add column reuses bigint;
comment on column tidegate.ended_task.reuses is 'The run in which a step ended, if that was another one.';

-- Few steps are reused, so it is small.
create index ended_task_reuses on tidegate.ended_task (reuses) where reuses is not null;

create or replace view tidegate.task as
select node, parent, kind, name, step_index, id, idempotency, tags, state, priority, accepted, due, started,
    null::timestamptz as ended, attempts, failures, losses, worker, lease_until, stop, paused, error,
    tidegate.readable(payload) as payload, null::text as output, null::bigint as reuses
from tidegate.open_task
union all
select node, parent, kind, name, step_index, id, idempotency, tags, state, priority, accepted, null, started,
    ended, attempts, failures, losses, null, null, stop, paused, error,
    tidegate.readable(payload), tidegate.readable(output), reuses
from tidegate.ended_task;
