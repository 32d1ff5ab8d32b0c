-- What the workers of such items had to do.
delete from item_order where step = ?1 and idx <= ?2
