-- Whether the last entry that is in the tables says what the durable state amounts to.
select digest is not null from tidegate.position
