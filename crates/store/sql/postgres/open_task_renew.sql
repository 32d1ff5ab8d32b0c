-- Leases that last longer, if they are still the live ones.
update tidegate.open_task as task
set lease_until = renewal.until
from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::timestamptz[]) as renewal (node, incarnation, grant_number, until)
where task.node = renewal.node
    and task.incarnation = renewal.incarnation
    and task.grant_number = renewal.grant_number
