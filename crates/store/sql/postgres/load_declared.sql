-- What was declared, in that order.
select definition::text from tidegate.declared order by place
