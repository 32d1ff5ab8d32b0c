-- Entries to project, oldest first: as many as bring about $2 writes.
select sequence, entry
from (
    select sequence, entry, writes, sum(writes + 1) over (order by sequence) as total
    from tidegate.journal
    where sequence > $1 and sequence <= $1 + 1000
) as tail
where total - (writes + 1) < $2
order by sequence
