-- The root that was accepted under an id, open or ended: a repeated submission must find it.
select node from task where run_id = ?1
