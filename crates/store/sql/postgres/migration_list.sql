-- The migrations that were made, oldest first.
select number, name, checksum from tidegate.migration order by number
