-- The order of an item.
select payload from item_order where step = ?1 and idx = ?2
