-- Some jobs are over.
update bench_floor_job set state = 'succeeded', ended = $2 where id = any($1)
