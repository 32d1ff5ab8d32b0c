-- What is left of rates and quotas.
insert into tidegate.pace (key, name, pace)
select key, name, pace::json from unnest($1::text[], $2::text[], $3::text[]) as pace (key, name, pace)
on conflict (key) do update set pace = excluded.pace
