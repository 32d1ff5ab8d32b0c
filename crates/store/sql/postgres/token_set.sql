-- A token is made, or says something else.
insert into tidegate.token (id, name, hash, scopes, made_by, made_at, until)
values ($1, $2, $3, $4::text::json, $5, $6, $7)
on conflict (id) do update
set name = excluded.name,
    hash = excluded.hash,
    scopes = excluded.scopes,
    made_by = excluded.made_by,
    made_at = excluded.made_at,
    until = excluded.until
