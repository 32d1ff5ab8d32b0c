-- What was accepted under ids and idempotency keys, open or ended: the latest under each. Each is one look at an index.
select found.node, found.id, found.content
from unnest($1::uuid[], $2::text[]) with ordinality as sought (id, key, place)
left join lateral (
    (select node, id, content from tidegate.open_task where open_task.id = sought.id)
    union all
    (select node, id, content from tidegate.ended_task where ended_task.id = sought.id)
    union all
    (select node, id, content from tidegate.open_task where open_task.idempotency = sought.key)
    union all
    (select node, id, content from tidegate.ended_task where ended_task.idempotency = sought.key)
    order by node desc
    limit 1
) as found on true
order by sought.place
