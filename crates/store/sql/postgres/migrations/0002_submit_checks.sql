-- What could never be accepted is said to whoever submits it, and not to whoever reads the mailbox.
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
begin
    if coalesce(octet_length(submit.name), 0) not between 1 and 256 then
        raise exception 'tidegate.submit: the name must have 1 to 256 bytes' using errcode = 'invalid_parameter_value';
    elsif octet_length(submit.key) > 256 then
        raise exception 'tidegate.submit: the key must have at most 256 bytes' using errcode = 'invalid_parameter_value';
    elsif coalesce(submit.priority, 1000) not between -100 and 100 then
        raise exception 'tidegate.submit: the priority must be between -100 and 100'
            using errcode = 'invalid_parameter_value';
    elsif submit.due not between '0001-01-01 00:00:00+00' and '9999-12-31 00:00:00+00' then
        raise exception 'tidegate.submit: the time it is due must be of the years 1 to 9999'
            using errcode = 'invalid_parameter_value';
    elsif coalesce(jsonb_typeof(submit.tags), '') <> 'object'
        or jsonb_path_exists(submit.tags, '$.* ? (@.type() != "string")') then
        raise exception 'tidegate.submit: the tags must be an object of strings'
            using errcode = 'invalid_parameter_value';
    end if;
    insert into tidegate.mailbox (id, content) values (made, jsonb_build_object(
        'name', submit.name, 'input', submit.input, 'tags', submit.tags, 'priority', submit.priority,
        'key', submit.key, 'due', submit.due
    ));
    perform pg_notify('tidegate', 'mailbox');
    return made;
end
$$;
