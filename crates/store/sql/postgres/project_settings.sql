-- For this transaction only: what changes is followed from numbers to rows. The planner cannot know that this is
-- always right and would, when many rows change at once, rather read whole tables.
select
    set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
    set_config('enable_mergejoin', 'off', true), set_config('jit', 'off', true)
