-- One more migration was made.
insert into tidegate.migration (number, name, checksum) values ($1, $2, $3)
