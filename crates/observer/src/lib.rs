//! Who really ran what, and when: written down by the jobs themselves, judged by a program that knows no engine.
//!
//! - [`record`]: one fact, in 64 bytes; [`recorder`]: appends facts to a file; [`clock`]: when they were
//! - [`case`]: what was promised; [`mod@judge`]: whether it was kept
//!
//! Nothing here knows how Tidegate decides, and nothing of Tidegate may depend on it: an oracle that shares code with
//! what it judges shares its mistakes.

pub mod case;
pub mod clock;
pub mod judge;
pub mod record;
pub mod recorder;

pub use case::Case;
pub use judge::{Verdict, Violation, judge};
pub use record::{Claim, Fact, Record};
pub use recorder::{Mode, Recorder, read, read_after};
