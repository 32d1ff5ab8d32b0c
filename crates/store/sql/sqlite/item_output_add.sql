-- What an item gave.
insert or replace into item_output (step, idx, output) values (?1, ?2, ?3)
