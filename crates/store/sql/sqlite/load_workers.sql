-- Workers that have not gone.
select name, incarnation, skills, process_slots, io_slots from worker order by name
