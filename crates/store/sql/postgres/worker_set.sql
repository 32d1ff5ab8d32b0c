-- A worker joined, or offers other slots.
insert into tidegate.worker (name, incarnation, skills, process_slots, io_slots) values ($1, $2, $3::text::json, $4, $5)
on conflict (name) do update
set incarnation = excluded.incarnation,
    skills = excluded.skills,
    process_slots = excluded.process_slots,
    io_slots = excluded.io_slots
