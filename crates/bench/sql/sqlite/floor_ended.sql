-- How many are over.
select count(*) from job where ended is not null
