-- What is left of a rate or quota.
insert or replace into pace (key, name, pace) values (?1, ?2, ?3)
