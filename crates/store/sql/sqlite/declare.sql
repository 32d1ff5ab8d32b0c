-- A definition replaces the one of the same name (and version) and takes the last position.
insert or replace into declared (kind, name, version, definition) values (?1, ?2, ?3, ?4)
