-- The entries after one, oldest first: $2 at most, and about $3 bytes of them.
select sequence, entry
from (
    select
        sequence, entry, octet_length(entry) as bytes,
        sum(octet_length(entry)) over (order by sequence) as total_bytes
    from (
        select sequence, entry from tidegate.journal where sequence > $1 order by sequence limit $2
    ) as next
) as list
where total_bytes - bytes < $3
order by sequence
