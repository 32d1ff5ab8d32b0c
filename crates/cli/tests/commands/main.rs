//! The commands, from the outside: the real binary, in a directory of its own.

mod check;
mod guides;
mod outage;
mod run;
mod support;
mod terminal;
mod upkeep;
mod why;
