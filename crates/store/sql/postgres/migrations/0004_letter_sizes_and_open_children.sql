-- Letters are weighed when they are left, so that whoever reads them knows how many to read at once. What is too large, or
-- cannot be written as text, is said to whoever submits it. And whoever looks at a run finds its open steps.

alter table tidegate.mailbox add column size integer not null default 0;
comment on column tidegate.mailbox.size is 'The bytes of its content as text.';

create function tidegate.weigh_letter() returns trigger
language plpgsql set search_path = pg_catalog as $$
begin
    new.size := octet_length(new.content::text);
    return new;
end
$$;
comment on function tidegate.weigh_letter is 'Notes how large a letter is.';
create trigger weigh_letter before insert on tidegate.mailbox for each row execute function tidegate.weigh_letter();

-- Those that wait already. One that cannot be read would keep all that follow it waiting.
do $$
declare
    letter bigint;
begin
    for letter in select number from tidegate.mailbox where problem is null loop
        begin
            update tidegate.mailbox set size = octet_length(content::text) where number = letter;
        exception when others then
            update tidegate.mailbox set problem = sqlerrm where number = letter;
        end;
    end loop;
end
$$;

create index mailbox_waiting on tidegate.mailbox (number) include (size) where problem is null;

-- Jobs, which are the many, cost nothing here.
create index open_task_child on tidegate.open_task (parent) where parent is not null;

create or replace function tidegate.submit(
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
    problem text;
begin
    if coalesce(tidegate.name_width(submit.name), 0) not between 1 and 256 then
        problem := 'the name must have 1 to 256 bytes';
    elsif tidegate.name_width(submit.key) not between 1 and 256 then
        problem := 'the key must have 1 to 256 bytes';
    elsif coalesce(submit.priority, 1000) not between -100 and 100 then
        problem := 'the priority must be between -100 and 100';
    -- What readers of times in JSON take, whatever their time zone.
    elsif submit.due not between '0001-01-01 00:00:00+00' and '9999-12-30 22:00:00+00' then
        problem := 'the time it is due must be from the year 1 to 9999-12-30 22:00 UTC';
    -- As text, which is what is read: numbers such as 1e1000 are short only as long as nobody reads them.
    elsif octet_length(submit.input::text) > 16777216 then
        problem := 'the input must have at most 16 MiB as text';
    elsif octet_length(submit.tags::text) > 1048576 then
        problem := 'the tags must have at most 1 MiB as text';
    elsif coalesce(jsonb_typeof(submit.tags), '') <> 'object' then
        problem := 'the tags must be an object of strings';
    elsif exists (select from jsonb_each(submit.tags) as tag where jsonb_typeof(tag.value) <> 'string') then
        problem := 'the tags must be an object of strings';
    elsif exists (
        select from jsonb_each_text(submit.tags) as tag
        where tidegate.name_width(tag.key) not between 1 and 256 or tidegate.name_width(tag.value) > 256
    ) then
        problem := 'the names of tags must have 1 to 256 bytes, and their values at most 256';
    end if;
    if problem is not null then
        raise exception 'tidegate.submit: %', problem using errcode = 'invalid_parameter_value';
    end if;
    insert into tidegate.mailbox (id, content) values (made, jsonb_build_object(
        'name', submit.name, 'input', submit.input, 'tags', submit.tags, 'priority', submit.priority,
        'key', submit.key,
        -- In the same form whatever the time zone of the session is.
        'due', to_char(submit.due at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
    ));
    perform pg_notify('tidegate', 'mailbox');
    return made;
end
$$;
