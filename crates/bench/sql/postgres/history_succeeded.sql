-- How many jobs the history says have succeeded.
select count(*) from tidegate.ended_task where kind = 'job' and state = 'succeeded'
