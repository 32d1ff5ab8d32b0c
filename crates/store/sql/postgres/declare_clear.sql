-- A definition of the same name (and version) as a new one goes, so that the new one takes the last place.
delete from tidegate.declared where kind = $1 and name = $2 and version = $3
