-- A new leadership: whoever holds an older term is fenced off from now on.
update head set term = ?1, server = ?2
