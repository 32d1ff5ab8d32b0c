-- Who leads by this database's clock, and where it can be reached.
select leader.server, server.address, server.token
from tidegate.leader left join tidegate.server on server.name = leader.server
where leader.server is not null and leader.lease_until > clock_timestamp()
