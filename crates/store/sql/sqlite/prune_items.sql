-- How many items of a loop go now, ?2 at most, and the last of them.
select count(*), max(idx) from (select idx from item where step = ?1 order by idx limit ?2)
