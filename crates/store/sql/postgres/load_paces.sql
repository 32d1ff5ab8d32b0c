-- What is left of rates and quotas.
select key, pace::text from tidegate.pace
