-- Some jobs, which somebody chose before, begin.
update bench_floor_job set state = 'running', started = $2 where id = any($1)
