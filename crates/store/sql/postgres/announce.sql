-- Where a server can be reached. Each says so again and again; who has not for a day is gone.
with gone as (
    delete from tidegate.server where announced < clock_timestamp() - interval '1 day' and name <> $1
)
insert into tidegate.server (name, address, token) values ($1, $2, $3)
on conflict (name) do update
set address = excluded.address, token = excluded.token, announced = clock_timestamp()
