-- A run of a flow began inside the item.
update item set state = 'running', attempts = 1, started = coalesce(started, ?3) where step = ?1 and idx = ?2
