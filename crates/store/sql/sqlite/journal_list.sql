-- The entries after one, oldest first.
select entry from journal where sequence > ?1 order by sequence limit ?2
