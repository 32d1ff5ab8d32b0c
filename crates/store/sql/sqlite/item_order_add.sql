-- What a worker has to do for a new item.
insert into item_order (step, idx, payload) values (?1, ?2, ?3)
