-- The tables of a store. Times are microseconds since 1970, states and kinds are words, definitions are JSON:
-- people read these rows with the sqlite3 shell.

-- One row a job, run or step: the narrow part, which changes. Whether it is open is said by `ended`.
create table task (
    node integer primary key,
    parent integer,
    kind text not null,
    -- The action of a job, the flow of a run.
    name text,
    -- The place of a step in its flow.
    step_index integer,
    -- As users know it.
    run_id text,
    state text not null,
    priority integer not null,
    root integer not null,
    accepted integer not null,
    due integer,
    started integer,
    ended integer,
    attempts integer not null,
    failures integer not null,
    losses integer not null,
    -- The live grant; all of it is null if there is none.
    worker text,
    incarnation integer,
    grant_number integer,
    granted integer,
    lease_until integer,
    lease_length integer,
    stop text,
    paused integer not null,
    entered integer not null,
    error text
) strict;

-- What a core loads. An index of history would grow for ever; this one is as large as the work at hand.
create index task_open on task (node) where ended is null;

-- Roots by the id that users know: a submission that is repeated is accepted once. Steps have none.
create index task_id on task (run_id) where run_id is not null;

-- The steps of a run and the runs of sub-flows. Jobs, which are the many, cost nothing here.
create index task_child on task (parent) where parent is not null;

-- Roots by their end, for those who delete the oldest.
create index task_ended on task (ended) where ended is not null and parent is null;

-- The part of a task that never changes, so that a grant does not copy it. Without `strict`, because a payload is
-- text unless it is not UTF-8.
create table task_spec (
    node integer primary key,
    idempotency text,
    -- Digest of what was submitted under the idempotency key.
    content integer,
    body text not null,
    payload
);

-- Roots by their idempotency key.
create index task_key on task_spec (idempotency) where idempotency is not null;

create table task_output (
    node integer primary key,
    output
);

-- One row an item of a loop, in the order in which a loop is read.
create table item (
    step integer not null,
    idx integer not null,
    key text,
    state text not null,
    accepted integer not null,
    due integer,
    started integer,
    ended integer,
    attempts integer not null default 0,
    failures integer not null default 0,
    losses integer not null default 0,
    worker text,
    incarnation integer,
    grant_number integer,
    granted integer,
    lease_until integer,
    lease_length integer,
    stop text,
    error text,
    primary key (step, idx)
) strict, without rowid;

create table item_order (
    step integer not null,
    idx integer not null,
    payload,
    primary key (step, idx)
) without rowid;

create table item_output (
    step integer not null,
    idx integer not null,
    output,
    primary key (step, idx)
) without rowid;

-- What operators said about limits. The key is JSON, because names may hold any character; the name is for people.
create table limit_setting (
    key text primary key,
    name text not null,
    override text,
    paused integer not null
) strict, without rowid;

-- What is left of rates and quotas.
create table pace (
    key text primary key,
    name text not null,
    pace text not null
) strict, without rowid;

-- Flows, actions and limits; the position says in which order they were declared.
create table declared (
    position integer primary key,
    kind text not null,
    name text not null,
    version integer not null,
    definition text not null,
    unique (kind, name, version)
) strict;

create table worker (
    name text primary key,
    incarnation integer not null,
    skills text not null,
    process_slots integer not null,
    io_slots integer not null
) strict, without rowid;

-- The newest entries, as bytes: whoever follows what happens reads them in order.
create table journal (
    sequence integer primary key,
    entry blob not null
) strict;

-- What other programs left to be submitted. A number is never given twice.
create table mailbox (
    number integer primary key autoincrement,
    -- The id that the run will have.
    id text not null,
    content blob not null,
    -- Why it could not be read; it then stays to be looked at.
    problem text
) strict;

-- One row: the last entry, and who leads. The server is null once it has resigned.
create table head (
    one integer primary key check (one = 1),
    sequence integer not null,
    batch text not null,
    next integer not null,
    now integer not null,
    digest integer,
    term integer not null,
    server text
) strict;

insert into head values (1, 0, '', 0, 0, null, 0, null);
