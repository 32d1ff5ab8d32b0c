-- Whether there is a table of that name.
select exists (select 1 from sqlite_schema where type = 'table' and name = ?1)
