-- A commit, all in one statement: the fence, the entry, and the letters that leave with it. No row comes back if the
-- leader is another, if the entry does not follow the last one or if there is one of its number already.
with lead as (
    select from tidegate.leader where term = $2 and server is not null for key share
),
entry as (
    insert into tidegate.journal (sequence, term, batch, writes, entry)
    select $1, $2, $3, $4, $5 from lead
    where exists (select from tidegate.journal where sequence = $1 - 1)
        or ($1 = 1 and not exists (select from tidegate.journal))
    on conflict (sequence) do nothing
    returning sequence
),
taken as (
    delete from tidegate.mailbox where number = any ($6) and exists (select from entry)
)
select sequence from entry
