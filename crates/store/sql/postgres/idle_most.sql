-- For this transaction only: a process that is stopped in the middle of it, and so holds what it has locked, loses it
-- before another may take over the lead from it. This takes no snapshot.
set local idle_in_transaction_session_timeout = '3s'
