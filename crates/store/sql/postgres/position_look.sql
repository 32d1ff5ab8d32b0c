-- Up to where the tables are, and up to where the journal is.
select sequence, (select max(sequence) from tidegate.journal) from tidegate.position
