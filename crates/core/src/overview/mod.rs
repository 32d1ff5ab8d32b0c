//! Everything at a glance, for operators: limits and who has them, workers, what waits, what was declared. Reads only, and
//! never more than was asked for: whoever looks must not keep the writer from its work.

mod definitions;
mod limits;
mod queue;
mod stats;
mod workers;

pub use definitions::{DefinitionView, Kind};
pub use limits::{LimitDetail, LimitView, LimitsWanted};
pub use queue::{Queue, QueueRow, QueueWanted};
pub use stats::{LimitStats, NameStats, Stats};
pub use workers::{AttemptView, WorkerView};

/// Of anything that is listed.
pub const MOST_LISTED: usize = 1_000;
