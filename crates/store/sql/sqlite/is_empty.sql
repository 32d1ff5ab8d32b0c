-- Whether the file is new. A file with tables of somebody else is not ours to change.
select not exists (select 1 from sqlite_schema)
