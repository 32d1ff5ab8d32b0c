-- How a task ended.
select state, output, error, attempts
from task left join task_output using (node)
where node = ?1 and ended is not null
