-- Which migrations this database has seen, with a checksum, so that one that was edited later is noticed.
create table if not exists tidegate.migration (
    number bigint primary key,
    name text not null,
    checksum text not null
)
