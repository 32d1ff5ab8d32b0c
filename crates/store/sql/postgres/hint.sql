-- Whoever listens looks now instead of a little later.
select pg_notify('tidegate', 'lead')
