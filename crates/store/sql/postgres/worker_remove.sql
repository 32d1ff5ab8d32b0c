-- A worker is gone.
delete from tidegate.worker where name = $1
