-- Everything of ours is in one schema, beside whatever else the database holds.
create schema if not exists tidegate
