//! What the servers of a cluster say to each other: messages, and how they are cut out of a stream of bytes.
//!
//! One server connects to the one that leads and forwards to it. No sockets and no clocks here.

mod frame;
mod message;

pub use frame::{FrameError, MOST_BYTES, frame, take_frame};
pub use message::{Definition, Query, Reply, Request, Response, Result, Trouble, VERSION};
