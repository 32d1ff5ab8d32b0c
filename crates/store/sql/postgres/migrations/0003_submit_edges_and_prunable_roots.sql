-- What could never be read or accepted is said to whoever submits it, also at the edges; and roots that may be deleted
-- are found without looking at others.

create function tidegate.name_width(name text) returns integer
language sql immutable strict parallel safe set search_path = pg_catalog as $$
    select octet_length(convert_to(
        regexp_replace(regexp_replace(name, '["\\]', '12', 'g'), '[\u0001-\u001f\u007f]', '123456', 'g'), 'UTF8'
    ))
$$;
comment on function tidegate.name_width is 'The bytes of a name as JSON writes it, which are bounded. Control characters count as the widest.';

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

-- Roots with a key stay longer than others: who looks for those that may go does not step over those that may not.
drop index tidegate.ended_task_ended;
create index ended_task_keyless on tidegate.ended_task (ended) where parent is null and idempotency is null;
create index ended_task_keyed on tidegate.ended_task (ended) where parent is null and idempotency is not null;
