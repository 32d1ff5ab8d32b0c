-- How many are over.
select count(*) from bench_floor_job where ended is not null
