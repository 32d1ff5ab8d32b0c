//! What processes write, handed on line by line while they run.

pub use crate::guardian::wire::Stream;
use std::sync::Arc;
use tidegate_core::ids::RunId;
use tidegate_core::protocol::Lease;
use tidegate_core::time::Moment;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogLine {
    pub run: RunId,
    pub lease: Lease,
    /// Wall time at which it was read from the process.
    pub at: Moment,
    pub stream: Stream,
    /// At most 8 KiB.
    pub text: String,
    /// False if the line goes on in the next piece, or if the output ended without a newline.
    pub newline: bool,
}

/// Called from the worker's loop for every line: it must not block. A sink that cannot keep up has to drop.
pub type LogSink = Arc<dyn Fn(LogLine) + Send + Sync>;

/// Keeps nothing; the end of each output is in the attempt's result anyway.
pub fn discard() -> LogSink {
    Arc::new(|_| {})
}
