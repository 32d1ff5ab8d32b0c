//! The engine: one writer over one core, who may write, and the shell that does what they say.
//!
//! [`Writer`] and [`Server`] are step functions: inputs and the time go in, things to do come out. They do no I/O
//! and start no threads, so that the simulator steps the very code that runs in production; [`shell`] is the thin
//! layer that performs what they ask for. [`events`] tells what was made durable to whoever follows.

pub mod clock;
pub mod cluster;
pub mod events;
mod reader;
mod recall;
pub mod server;
pub mod shell;
pub mod writer;

pub use clock::EngineClock;
pub use cluster::Listener;
pub use reader::Reader;
pub use recall::{is_there, recall};
pub use server::{Input, MakeCore, Output, Server};
pub use shell::{
    Attachment, Definition, Deliver, Delivery, Engine, EngineError, Evaluate, Prepared, Settings, in_one_form,
};
pub use tidegate_wire as wire;
pub use writer::{GivenUp, Released, Ticket, Writer};
