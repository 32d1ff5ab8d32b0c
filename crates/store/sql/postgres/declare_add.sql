-- A new definition takes the last place.
insert into tidegate.declared (kind, name, version, definition) values ($1, $2, $3, $4::text::json)
