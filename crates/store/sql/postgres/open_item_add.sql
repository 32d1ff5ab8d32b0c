-- Items that were made and have not ended.
insert into tidegate.open_item (
    step, idx, key, state, accepted, due, started, attempts, failures, losses, worker, incarnation, grant_number, granted,
    lease_until, lease_length, stop, error, payload
)
select * from unnest(
    $1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::timestamptz[], $6::timestamptz[], $7::timestamptz[],
    $8::bigint[], $9::bigint[], $10::bigint[], $11::text[], $12::bigint[], $13::bigint[], $14::timestamptz[],
    $15::timestamptz[], $16::bigint[], $17::text[], $18::text[], $19::bytea[]
)
