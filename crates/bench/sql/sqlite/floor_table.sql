-- What a job needs at the least: one narrow row.
create table job (
    id integer primary key,
    state text not null,
    payload text not null,
    started integer,
    ended integer
) strict
