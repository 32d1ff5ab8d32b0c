-- Roots by their outcome and end: what failed is kept longer than what succeeded, and whoever looks for those that may go
-- does not step over those that may not. The many, which succeeded and have no key, are added at the end of the index.
drop index tidegate.ended_task_keyless;
drop index tidegate.ended_task_keyed;
create index ended_task_root on tidegate.ended_task ((state = 'succeeded'), (idempotency is null), ended)
    where parent is null;
