-- Who may ask.
select id, name, hash, scopes, made_by, made_at, until from token order by id
