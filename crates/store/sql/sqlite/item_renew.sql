-- A lease lasts longer, if it is still the live one.
update item set lease_until = ?5 where step = ?1 and idx = ?2 and incarnation = ?3 and grant_number = ?4
