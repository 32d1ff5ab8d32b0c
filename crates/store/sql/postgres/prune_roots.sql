-- Roots that ended before $1, oldest end first; those with an idempotency key only a while after their end. Only jobs
-- have nothing below them. What another server deletes at this moment is left to it.
select node, kind = 'job' from tidegate.ended_task
where parent is null and ended < $1
    and (idempotency is null or ended < clock_timestamp() - $2 * interval '1 microsecond')
order by ended, node
limit $3
for update skip locked
