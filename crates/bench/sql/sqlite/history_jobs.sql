-- Every job in the order of acceptance, and whether it succeeded; null if it has not ended.
select node, run_id, case when ended is not null then state = 'succeeded' end
from task
where kind = 'job'
order by node
