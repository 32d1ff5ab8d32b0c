-- What is left of rates and quotas.
select key, pace from pace
