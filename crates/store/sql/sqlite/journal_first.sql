-- The oldest entry that is kept; null if none is.
select min(sequence) from journal
