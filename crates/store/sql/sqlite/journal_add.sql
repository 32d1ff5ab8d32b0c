-- The entry itself, for whoever follows what happens.
insert into journal (sequence, entry) values (?1, ?2)
