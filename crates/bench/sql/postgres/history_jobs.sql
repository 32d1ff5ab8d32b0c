-- Every job in the order of acceptance, and whether it succeeded; null if it has not ended.
select node, id::text, case when state <> 'open' then state = 'succeeded' end
from (
    select node, id, state from tidegate.ended_task where kind = 'job'
    union all
    select node, id, 'open' from tidegate.open_task where kind = 'job'
) as job
order by node
