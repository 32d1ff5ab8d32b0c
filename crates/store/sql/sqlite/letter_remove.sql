-- A letter leaves with the entry that answers it.
delete from mailbox where number = ?1
