-- A worker is gone.
delete from worker where name = ?1
