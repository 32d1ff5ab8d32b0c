-- What such items gave.
delete from item_output where step = ?1 and idx <= ?2
