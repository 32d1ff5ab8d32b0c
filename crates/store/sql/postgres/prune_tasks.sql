-- Jobs, runs and steps that are history nobody wants.
delete from tidegate.ended_task where node = any ($1::bigint[])
