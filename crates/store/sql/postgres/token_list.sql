-- Who may ask.
select id, name, hash, scopes::text, made_by, made_at, until from tidegate.token order by id collate "C"
