-- The items of a loop that is history nobody wants.
delete from item where step = ?1
