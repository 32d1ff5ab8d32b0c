-- Who may ask over HTTP, and who changed what.

create table tidegate.token (
    id text primary key,
    name text not null,
    hash text not null,
    scopes json not null,
    made_by text not null,
    made_at timestamptz not null,
    until timestamptz
);
comment on table tidegate.token is 'Who may ask over HTTP. Of a token only its hash is kept.';

create table tidegate.audit (
    number bigint primary key,
    at timestamptz not null,
    who text not null,
    what text not null,
    about text not null,
    more text
);
comment on table tidegate.audit is 'Who changed what, and when.';

create index audit_at on tidegate.audit (at);
