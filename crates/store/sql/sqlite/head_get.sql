-- The last entry and the leadership, for the fence.
select sequence, batch, term, server, next, now, digest from head
