-- Which migrations this file has seen, with a checksum, so that one that was edited later is noticed.
create table if not exists migration (
    number integer primary key,
    name text not null,
    checksum text not null
) strict
