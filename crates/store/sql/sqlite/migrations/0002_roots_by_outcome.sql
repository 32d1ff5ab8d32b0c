-- Roots by their outcome and end: what failed is kept longer than what succeeded, and whoever looks for those that may go
-- does not step over those that may not.
drop index task_ended;
create index task_ended on task (state = 'succeeded', ended) where ended is not null and parent is null;
