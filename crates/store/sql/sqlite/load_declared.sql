-- What was declared, in that order.
select definition from declared order by position
