-- A worker joined, or offers other slots.
insert or replace into worker (name, incarnation, skills, process_slots, io_slots) values (?1, ?2, ?3, ?4, ?5)
