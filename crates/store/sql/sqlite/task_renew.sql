-- A lease lasts longer, if it is still the live one.
update task set lease_until = ?4 where node = ?1 and incarnation = ?2 and grant_number = ?3
