-- How the items of a range ended; those that have not are left out.
select state, output, error, attempts, idx from tidegate.ended_item
where step = $1 and idx >= $2 and idx < $3
order by idx
