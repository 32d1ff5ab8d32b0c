-- How the items of a range ended; those that have not are left out.
select state, output, error, attempts, idx
from item left join item_output using (step, idx)
where step = ?1 and idx >= ?2 and idx < ?3 and ended is not null
order by idx
