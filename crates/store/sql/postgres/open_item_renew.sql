-- Leases that last longer, if they are still the live ones.
update tidegate.open_item as item
set lease_until = renewal.until
from unnest(
    $1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::timestamptz[]
) as renewal (step, idx, incarnation, grant_number, until)
where item.step = renewal.step
    and item.idx = renewal.idx
    and item.incarnation = renewal.incarnation
    and item.grant_number = renewal.grant_number
