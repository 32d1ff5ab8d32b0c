//! One file a command: what is checked, what is changed, what is written. Each file ends with its tests.

mod by;
mod cancel;
mod declare;
mod evaluated;
mod finish;
mod heartbeat;
mod join;
mod leave;
mod offer;
mod pause;
mod post;
mod retry;
mod set_limit;
mod set_priority;
mod submit;
mod token;
mod wake;
