-- Some jobs are accepted.
insert into bench_floor_job (id, state, payload)
select id, 'waiting', $2 from unnest($1::bigint[]) as id
