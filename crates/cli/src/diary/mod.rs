//! What happened in each run and what its processes wrote: a file a run, in a folder beside the store.
//!
//! The store has the last word about a run; its diary is for people. It is written without ever making a run wait, so the
//! last moment before a kill may be missing, and whatever could not be written is counted in its place.
//!
//! - [`note`]: one line of the file; [`record`]: writing it; [`events`]: what else than lines goes into it
//! - [`read`]: reading it, also while it is written
//! - [`orphans`]: those of runs that are gone

mod events;
mod note;
mod orphans;
mod read;
mod record;

pub use events::{keep_events, last_position};
pub use note::{Note, What};
pub use orphans::{remove_old_orphans, remove_orphans};
pub use read::Reading;
pub use record::Recorder;

use std::path::{Path, PathBuf};
use tidegate_core::ids::RunId;

/// The folder of a store's diaries: `state.db.logs` beside `state.db`.
pub fn folder(store: &Path) -> PathBuf {
    let mut name = store.as_os_str().to_owned();
    name.push(".logs");
    name.into()
}

pub fn file(store: &Path, run: RunId) -> PathBuf {
    folder(store).join(format!("{run}.jsonl"))
}

/// Every run that has a diary.
pub fn runs(store: &Path) -> Vec<RunId> {
    let entries = std::fs::read_dir(folder(store)).into_iter().flatten().flatten();
    let run = |name: String| RunId::parse(name.strip_suffix(".jsonl")?);
    entries.filter_map(|entry| run(entry.file_name().into_string().ok()?)).collect()
}
