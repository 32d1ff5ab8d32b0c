-- What operators said about limits.
select key, override, paused from limit_setting
