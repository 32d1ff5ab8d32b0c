-- A new job, run or step.
insert into task (
    node, parent, kind, name, step_index, run_id, state, priority, root, accepted, due, started, ended,
    attempts, failures, losses, worker, incarnation, grant_number, granted, lease_until, lease_length,
    stop, paused, entered, error, reuses
) values (
    ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13,
    ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22,
    ?23, ?24, ?25, ?26, ?27
)
