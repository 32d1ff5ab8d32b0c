-- Nothing is said about this limit any more.
delete from limit_setting where key = ?1
