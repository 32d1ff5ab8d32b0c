-- Whether the schema is there, and whether it is ours. The catalogue is read itself: a look by name may still believe
-- what was so before somebody else was waited for.
select
    exists (select from pg_namespace where nspname = 'tidegate'),
    exists (
        select from pg_class join pg_namespace on pg_namespace.oid = relnamespace
        where nspname = 'tidegate' and relname = 'migration'
    )
