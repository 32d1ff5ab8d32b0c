-- A running item was told to stop.
update item set stop = ?3, error = coalesce(?4, error) where step = ?1 and idx = ?2
