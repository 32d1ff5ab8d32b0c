-- The last entry and the leadership, for the fence.
select sequence, batch, term, server, next, now from head
