-- Who may ask over HTTP. Of a token only its hash is kept.
create table token (
    id text primary key,
    name text not null,
    hash text not null,
    scopes text not null,
    made_by text not null,
    made_at integer not null,
    until integer
) strict, without rowid;

-- Who changed what, and when.
create table audit (
    number integer primary key,
    at integer not null,
    who text not null,
    what text not null,
    about text not null,
    more text
) strict;

create index audit_at on audit (at);
