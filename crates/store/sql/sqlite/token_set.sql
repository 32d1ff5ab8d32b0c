-- A token is made, or says something else.
insert or replace into token (id, name, hash, scopes, made_by, made_at, until) values (?1, ?2, ?3, ?4, ?5, ?6, ?7)
