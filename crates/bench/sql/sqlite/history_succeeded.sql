-- How many jobs the history says have succeeded.
select count(*) from task where kind = 'job' and state = 'succeeded'
