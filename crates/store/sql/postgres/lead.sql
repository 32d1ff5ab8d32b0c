-- Takes the lead, or extends it. Only a new leadership changes the key, so that a renewal never waits for a commit.
update tidegate.leader
set term = case when server is not null and term = $2 then term else term + 1 end,
    server = $1,
    lease_until = clock_timestamp() + $3 * interval '1 microsecond'
where server is null or term = $2 or server = $1 or lease_until <= clock_timestamp()
returning term, clock_timestamp()
