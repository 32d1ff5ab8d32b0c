-- The entries after one, oldest first.
select sequence, entry from tidegate.journal where sequence > $1 order by sequence limit $2
