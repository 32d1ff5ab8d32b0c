-- Nothing is left of an earlier measurement.
drop table if exists bench_floor_job
