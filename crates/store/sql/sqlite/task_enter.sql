-- A run, loop or sub-flow begins, a step got past the limit of its run, or a root came due: such a root stands in
-- line and holds nothing.
update task
set state = ?2,
    entered = (?2 <> 'waiting' or kind = 'step'),
    due = null,
    started = case when ?2 = 'running' then coalesce(started, ?3) else started end
where node = ?1
