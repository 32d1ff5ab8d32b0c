//! Puts the events of one run into its diary.

use super::note::{Note, What};
use super::read::Reading;
use super::record::Recorder;
use crate::time::now;
use std::path::Path;
use tidegate::{Error, Events, Happening, Position};
use tidegate_core::ids::RunId;

/// Until the run has finished, or nothing more will be heard of it.
pub async fn keep_events(mut events: Events, run: RunId, recorder: Recorder) {
    loop {
        match events.next().await {
            Ok(event) if event.run == Some(run) => {
                recorder.note(run, Note::from(&event));
                if matches!(event.what, Happening::RunFinished { .. }) {
                    return;
                }
            }
            Ok(_) => {}
            Err(Error::Missed { from, to }) => {
                recorder
                    .note(run, Note { at: now(), task: None, what: What::Missed(to.saturating_sub(from)) });
            }
            Err(_) => return,
        }
    }
}

/// After which the events of a run are to be kept that was begun by another process.
pub fn last_position(store: &Path, run: RunId) -> Option<Position> {
    let mut reading = Reading::open(store, run).ok()?;
    let mut last = None;
    while let Ok(Some(note)) = reading.next() {
        if let What::Happened { id, .. } = note.what {
            last = id.parse().ok().or(last);
        }
    }
    last
}
