-- The right to project. Whoever does not get it at once leaves it to who has it.
select sequence from tidegate.position for update skip locked
