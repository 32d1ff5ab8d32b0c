-- The newest entry; null if there was none.
select max(sequence) from tidegate.journal
