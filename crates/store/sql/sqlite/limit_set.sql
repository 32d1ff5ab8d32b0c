-- What an operator said about a limit replaces what was said before.
insert or replace into limit_setting (key, name, override, paused) values (?1, ?2, ?3, ?4)
