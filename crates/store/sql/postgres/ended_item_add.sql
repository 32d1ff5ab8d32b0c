-- Items that were made and ended since the tables were last brought up to date.
insert into tidegate.ended_item (
    step, idx, key, state, accepted, started, ended, attempts, failures, losses, stop, error, payload, output
)
select * from unnest(
    $1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::timestamptz[], $6::timestamptz[], $7::timestamptz[],
    $8::bigint[], $9::bigint[], $10::bigint[], $11::text[], $12::text[], $13::bytea[], $14::bytea[]
)
