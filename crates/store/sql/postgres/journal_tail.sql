-- Entries to project, oldest first: as many as bring about $2 writes, or about $3 bytes.
select sequence, entry
from (
    select
        sequence, entry, writes, octet_length(entry) as bytes,
        sum(writes + 1) over (order by sequence) as total,
        sum(octet_length(entry)) over (order by sequence) as total_bytes
    from tidegate.journal
    where sequence > $1 and sequence <= $1 + 1000
) as tail
where total - (writes + 1) < $2 and total_bytes - bytes < $3
order by sequence
