-- Everything open. Small payloads come along.
select
    state, attempts, failures, losses, stop, started, error, due, worker, incarnation, grant_number, granted, lease_until,
    lease_length, paused, entered, null::timestamptz, node, parent, root, priority, accepted, body,
    case when octet_length(payload) <= $1 then payload end
from tidegate.open_task
order by node
