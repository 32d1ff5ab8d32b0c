-- How many entries that are kept were written under the newest term, and how many follow one of a later term than
-- their own: what somebody decided who led no more.
select
    count(*) filter (where term = (select max(term) from tidegate.journal)),
    count(*) filter (where term < latest)
from (
    select term, max(term) over (order by sequence) as latest from tidegate.journal
) as entry
