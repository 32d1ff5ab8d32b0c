-- What a job needs at the least: one narrow row. Rows change in place, so pages have room for it.
create table bench_floor_job (
    id bigint primary key,
    state text not null,
    payload text not null,
    started bigint,
    ended bigint
) with (fillfactor = 50)
