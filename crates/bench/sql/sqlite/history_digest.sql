-- Whether the last entry says what the durable state amounts to.
select digest is not null from head
