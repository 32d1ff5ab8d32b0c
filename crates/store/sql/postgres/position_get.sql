-- Up to where the tables are.
select sequence, next, now, digest from tidegate.position
