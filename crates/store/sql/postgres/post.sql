-- Leaves something to be submitted, inside whatever transaction the caller is in.
select tidegate.submit($1, $2::jsonb, $3::jsonb, $4, $5, $6)::text
