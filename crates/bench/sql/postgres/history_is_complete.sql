-- Whether nothing is open any more and the history holds so many jobs. The count is only made when nothing is open.
select not exists (select from tidegate.open_task)
    and (select count(*) from tidegate.ended_task where kind = 'job') >= $1
