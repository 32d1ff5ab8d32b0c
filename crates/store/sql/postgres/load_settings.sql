-- For this transaction only: all that is open is read, so the planner may do as it likes again.
select set_config('enable_seqscan', 'on', true), set_config('enable_hashjoin', 'on', true)
