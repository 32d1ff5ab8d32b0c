-- A job is accepted.
insert into job (id, state, payload) values (?1, 'waiting', ?2)
