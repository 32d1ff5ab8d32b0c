-- Items of loops that are history nobody wants, at most $2 of them. Rows are looked up by an array and not joined:
-- nobody knows how few of all items are meant.
delete from tidegate.ended_item where ctid = any (array(
    select ctid from tidegate.ended_item where step = any ($1::bigint[]) limit $2
))
