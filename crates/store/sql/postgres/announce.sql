-- Where a server can be reached.
insert into tidegate.server (name, address, token) values ($1, $2, $3)
on conflict (name) do update
set address = excluded.address, token = excluded.token, announced = clock_timestamp()
