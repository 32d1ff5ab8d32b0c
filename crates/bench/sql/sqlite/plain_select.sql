-- Everything about the open tasks of a store, read by nobody in particular.
select * from task join task_spec using (node) where ended is null order by node
