-- Entries that nobody needs to be able to read any more.
delete from journal where sequence <= ?1
