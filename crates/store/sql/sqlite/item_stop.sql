-- A running item was told to stop.
update item set stop = ?3 where step = ?1 and idx = ?2
