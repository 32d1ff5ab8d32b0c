-- What operators said about limits.
select key, override::text, paused from tidegate.limit_setting
