-- Nothing is said about this limit any more.
delete from tidegate.limit_setting where key = $1
