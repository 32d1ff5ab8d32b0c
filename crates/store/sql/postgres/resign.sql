-- Nobody leads. A resignation from an older term changes nothing, and what is committed later finds no leader.
update tidegate.leader set server = null where term = $1 and server is not null returning term
