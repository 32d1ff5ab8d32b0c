-- Somebody changed something.
insert into tidegate.audit (number, at, who, what, about, more) values ($1, $2, $3, $4, $5, $6)
on conflict (number) do nothing
