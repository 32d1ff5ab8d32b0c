-- A new item, waiting.
insert into item (step, idx, key, state, accepted) values (?1, ?2, ?3, 'waiting', ?4)
