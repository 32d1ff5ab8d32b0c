-- Nobody leads. A resignation from an older term changes nothing.
update head set server = null where term = ?1
