-- Servers that start together make the steps one after the other. The number is ours alone.
select pg_advisory_xact_lock(8387223471985)
