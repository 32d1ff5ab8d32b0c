-- What an operator said about a limit replaces what was said before.
insert into tidegate.limit_setting (key, name, override, paused) values ($1, $2, $3::text::json, $4)
on conflict (key) do update set name = excluded.name, override = excluded.override, paused = excluded.paused
