-- Workers that have not gone.
select name, incarnation, skills::text, process_slots, io_slots from tidegate.worker
