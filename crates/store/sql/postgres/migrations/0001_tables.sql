-- The tables of a store. The journal is the truth; the tables that follow it are for people, for history and for a
-- fresh start, and are written by one projector at a time.

create table tidegate.leader (
    term bigint primary key,
    server text,
    lease_until timestamptz not null,
    one boolean not null default true unique check (one)
);
comment on table tidegate.leader is 'One row: who may commit. A take-over changes its key, and so waits for a commit under way; a renewal does not.';
comment on column tidegate.leader.term is 'Higher with every leadership.';
comment on column tidegate.leader.server is 'Who leads; null once it has resigned.';
comment on column tidegate.leader.lease_until is 'When another server may take over, by this database''s clock.';
insert into tidegate.leader (term, server, lease_until) values (0, null, '-infinity');

create table tidegate.server (
    name text primary key,
    address text not null,
    token text not null,
    announced timestamptz not null default clock_timestamp()
);
comment on table tidegate.server is 'Where servers reach each other.';

create table tidegate.journal (
    sequence bigint primary key,
    term bigint not null,
    batch uuid not null,
    writes integer not null,
    entry bytea not null
) with (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
    toast.autovacuum_vacuum_scale_factor = 0, toast.autovacuum_vacuum_threshold = 50000
);
comment on table tidegate.journal is 'What was committed, one row a batch. The newest thousand stay when they are in the tables.';
comment on column tidegate.journal.batch is 'By which a leader recognises its own entry after an unknown outcome.';
comment on column tidegate.journal.writes is 'How many writes the entry holds.';
-- It is compact already.
alter table tidegate.journal alter column entry set storage external;

create table tidegate.position (
    one boolean primary key default true check (one),
    sequence bigint not null,
    next bigint not null,
    now timestamptz not null,
    digest bigint
);
comment on table tidegate.position is 'One row: up to which entry the tables hold what happened. Whoever projects locks it.';
comment on column tidegate.position.next is 'The next number that the core gives out, as the entry said.';
comment on column tidegate.position.now is 'Engine time, as the entry said.';
insert into tidegate.position (sequence, next, now) values (0, 0, 'epoch');

create table tidegate.open_task (
    node bigint primary key,
    parent bigint,
    kind text not null,
    name text,
    step_index bigint,
    id uuid,
    idempotency text,
    content bigint,
    tags json,
    state text not null,
    priority smallint not null,
    root bigint not null,
    accepted timestamptz not null,
    due timestamptz,
    started timestamptz,
    attempts bigint not null,
    failures bigint not null,
    losses bigint not null,
    worker text,
    incarnation bigint,
    grant_number bigint,
    granted timestamptz,
    lease_until timestamptz,
    lease_length bigint,
    stop text,
    paused boolean not null,
    entered boolean not null,
    error text,
    body bytea not null,
    payload bytea
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 5000);
comment on table tidegate.open_task is 'Jobs, runs and steps that have not ended.';
comment on column tidegate.open_task.parent is 'The run of a step; the step of a sub-flow''s run.';
comment on column tidegate.open_task.kind is 'job, run or step.';
comment on column tidegate.open_task.name is 'The action of a job, the flow of a run.';
comment on column tidegate.open_task.step_index is 'The place of a step in its flow.';
comment on column tidegate.open_task.id is 'As users know it; only what was submitted has one.';
comment on column tidegate.open_task.content is 'Digest of what was submitted under the idempotency key.';
comment on column tidegate.open_task.root is 'The number by which it stands in line.';
comment on column tidegate.open_task.due is 'Not before this time.';
comment on column tidegate.open_task.started is 'First start.';
comment on column tidegate.open_task.attempts is 'Attempts started, whatever became of them.';
comment on column tidegate.open_task.worker is 'Who has it now; with it, all about the live grant is null if nobody has.';
comment on column tidegate.open_task.lease_length is 'In microseconds.';
comment on column tidegate.open_task.stop is 'Why it was told to stop.';
comment on column tidegate.open_task.entered is 'It holds what its level asks for.';
comment on column tidegate.open_task.body is 'Everything else that the core knows of it, in the journal''s encoding.';
comment on column tidegate.open_task.payload is 'A job''s or step''s order, a run''s inputs, a loop''s list.';
create index open_task_id on tidegate.open_task (id) where id is not null;
create index open_task_key on tidegate.open_task (idempotency) where idempotency is not null;

create table tidegate.ended_task (
    node bigint primary key,
    parent bigint,
    kind text not null,
    name text,
    step_index bigint,
    id uuid,
    idempotency text,
    content bigint,
    tags json,
    state text not null,
    priority smallint not null,
    root bigint not null,
    accepted timestamptz not null,
    started timestamptz,
    ended timestamptz not null,
    attempts bigint not null,
    failures bigint not null,
    losses bigint not null,
    stop text,
    paused boolean not null,
    entered boolean not null,
    error text,
    body bytea not null,
    payload bytea,
    output bytea
);
comment on table tidegate.ended_task is 'Jobs, runs and steps that have ended: a row is written once. Columns mean what they mean in open_task.';
create index ended_task_id on tidegate.ended_task (id) where id is not null;
create index ended_task_key on tidegate.ended_task (idempotency) where idempotency is not null;
create index ended_task_child on tidegate.ended_task (parent) where parent is not null;
create index ended_task_ended on tidegate.ended_task (ended) where parent is null;

create table tidegate.open_item (
    step bigint not null,
    idx bigint not null,
    key text,
    state text not null,
    accepted timestamptz not null,
    due timestamptz,
    started timestamptz,
    attempts bigint not null,
    failures bigint not null,
    losses bigint not null,
    worker text,
    incarnation bigint,
    grant_number bigint,
    granted timestamptz,
    lease_until timestamptz,
    lease_length bigint,
    stop text,
    error text,
    payload bytea,
    primary key (step, idx)
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 5000);
comment on table tidegate.open_item is 'Items of loops that have not ended. Columns mean what they mean in open_task.';
comment on column tidegate.open_item.key is 'Under which a limit counts it.';

create table tidegate.ended_item (
    step bigint not null,
    idx bigint not null,
    key text,
    state text not null,
    accepted timestamptz not null,
    started timestamptz,
    ended timestamptz not null,
    attempts bigint not null,
    failures bigint not null,
    losses bigint not null,
    stop text,
    error text,
    payload bytea,
    output bytea,
    primary key (step, idx)
);
comment on table tidegate.ended_item is 'Items of loops that have ended.';

create table tidegate.limit_setting (
    key text primary key,
    name text not null,
    override json,
    paused boolean not null
);
comment on table tidegate.limit_setting is 'What operators said about limits. The key is JSON, because names may hold any character; the name is for people.';

create table tidegate.pace (
    key text primary key,
    name text not null,
    pace json not null
);
comment on table tidegate.pace is 'What is left of rates and quotas.';

create table tidegate.declared (
    place bigint generated always as identity,
    kind text not null,
    name text not null,
    version bigint not null,
    definition json not null,
    primary key (kind, name, version)
);
comment on table tidegate.declared is 'Flows, actions and limits; the place says in which order they were declared.';

create table tidegate.worker (
    name text primary key,
    incarnation bigint not null,
    skills json not null,
    process_slots bigint not null,
    io_slots bigint not null
);
comment on table tidegate.worker is 'Workers that have not gone.';

create table tidegate.mailbox (
    number bigint generated always as identity primary key,
    id uuid not null,
    content jsonb not null,
    posted timestamptz not null default clock_timestamp(),
    problem text
);
comment on table tidegate.mailbox is 'What applications left to be submitted, inside transactions of their own; see tidegate.submit.';
comment on column tidegate.mailbox.id is 'The id that the run will have.';
comment on column tidegate.mailbox.problem is 'Why it could not be read; it then stays to be looked at.';

create function tidegate.readable(bytes bytea) returns text
language plpgsql immutable strict parallel safe set search_path = pg_catalog as $$
begin
    return convert_from(bytes, 'UTF8');
exception when others then
    return null;
end
$$;
comment on function tidegate.readable is 'A payload as text; null if it is not text.';

create view tidegate.task as
select node, parent, kind, name, step_index, id, idempotency, tags, state, priority, accepted, due, started,
    null::timestamptz as ended, attempts, failures, losses, worker, lease_until, stop, paused, error,
    tidegate.readable(payload) as payload, null::text as output
from tidegate.open_task
union all
select node, parent, kind, name, step_index, id, idempotency, tags, state, priority, accepted, null, started,
    ended, attempts, failures, losses, null, null, stop, paused, error,
    tidegate.readable(payload), tidegate.readable(output)
from tidegate.ended_task;
comment on view tidegate.task is 'Every job, run and step, for people.';

create view tidegate.item as
select step, idx, key, state, accepted, due, started, null::timestamptz as ended, attempts, failures, losses, worker,
    lease_until, stop, error, tidegate.readable(payload) as payload, null::text as output
from tidegate.open_item
union all
select step, idx, key, state, accepted, null, started, ended, attempts, failures, losses, null,
    null, stop, error, tidegate.readable(payload), tidegate.readable(output)
from tidegate.ended_item;
comment on view tidegate.item is 'Every item of a loop, for people.';

create function tidegate.submit(
    name text,
    input jsonb default '{}',
    tags jsonb default '{}',
    priority integer default 0,
    key text default null,
    due timestamptz default null
) returns uuid
language plpgsql set search_path = pg_catalog as $$
declare
    millis bytea := substring(int8send((extract(epoch from clock_timestamp()) * 1000)::bigint) from 3);
    -- A UUID of version 7: the time, then what is random of one of version 4.
    made uuid := encode(
        set_bit(set_bit(overlay(uuid_send(gen_random_uuid()) placing millis from 1 for 6), 52, 1), 53, 1), 'hex'
    )::uuid;
begin
    insert into tidegate.mailbox (id, content) values (made, jsonb_build_object(
        'name', submit.name, 'input', submit.input, 'tags', submit.tags, 'priority', submit.priority,
        'key', submit.key, 'due', submit.due
    ));
    perform pg_notify('tidegate', 'mailbox');
    return made;
end
$$;
comment on function tidegate.submit is 'Submits a flow or an action if the transaction around it commits; gives the id of the run.';
