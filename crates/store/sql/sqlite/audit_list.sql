-- Who changed what, newest first.
select number, at, who, what, about, more from audit where number < ?1 order by number desc limit ?2
