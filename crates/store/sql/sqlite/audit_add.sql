-- Somebody changed something.
insert or replace into audit (number, at, who, what, about, more) values (?1, ?2, ?3, ?4, ?5, ?6)
