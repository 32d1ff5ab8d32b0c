-- Items of such loops that never came to an end, at most $2 of them.
delete from tidegate.open_item where ctid = any (array(
    select ctid from tidegate.open_item where step = any ($1::bigint[]) limit $2
))
