-- For this transaction only: whoever else works with the tables for long, such as one who makes an index, is not waited for.
set local lock_timeout = '500ms'
