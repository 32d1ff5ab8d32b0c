-- The items of a loop that is history nobody wants, up to one of them.
delete from item where step = ?1 and idx <= ?2
