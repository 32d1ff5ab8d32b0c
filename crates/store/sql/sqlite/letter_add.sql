-- Something to be submitted, left by any process.
insert into mailbox (id, content) values (?1, ?2)
