-- Items of a loop ended alike: those of the range that are still open move to history.
with gone as (
    delete from tidegate.open_item
    where step = $1 and idx >= $2 and idx < $3
    returning step, idx, key, accepted, started, attempts, failures, losses, stop, payload
)
insert into tidegate.ended_item (
    step, idx, key, state, accepted, started, ended, attempts, failures, losses, stop, error, payload, output
)
select step, idx, key, $4, accepted, started, $5, attempts, failures, losses, stop, null, payload, null from gone
