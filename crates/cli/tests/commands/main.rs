//! The commands, from the outside: the real binary, in a directory of its own.

#[path = "../../../store/tests/database/mod.rs"]
mod database;

mod actions;
mod cancel;
mod chains;
mod check;
mod defaults;
mod examples;
mod folder;
mod guides;
mod http;
mod kills;
mod left;
mod operate;
mod outage;
mod packs;
mod plan;
mod reference;
mod retry;
mod run;
mod runs;
mod schema;
mod serve;
mod support;
mod terminal;
mod upkeep;
mod why;
