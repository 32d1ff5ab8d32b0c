-- Entries that are in the tables and older than those that are kept. What is below $1 is gone already.
delete from tidegate.journal where sequence > $1 and sequence <= $2
