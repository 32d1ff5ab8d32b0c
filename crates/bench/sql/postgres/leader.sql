-- Who leads by this database's clock, and under which term.
select server, term from tidegate.leader where server is not null and lease_until > clock_timestamp()
