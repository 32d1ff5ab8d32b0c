-- The migrations that were made, oldest first.
select number, name, checksum from migration order by number
