-- Letters after one, in the order in which they were left.
select number, id, content from mailbox where number > ?1 and problem is null order by number limit ?2
