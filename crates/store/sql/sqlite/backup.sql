-- A copy of the whole file as of one moment, without what is free in it.
vacuum into ?1
