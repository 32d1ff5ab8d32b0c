-- Why an entry was not taken: who has its number, and whether its leader still leads.
select
    (select batch from tidegate.journal where sequence = $1),
    exists (select from tidegate.leader where term = $2 and server is not null)
