//! Writes diaries on a thread of its own. Nobody waits for it: what it cannot keep up with is counted.

use super::note::{Note, What};
use super::{file, folder};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use tidegate_core::ids::RunId;

/// Notes that may wait to be written.
const WAITING: usize = 10_000;
/// Bytes of one diary.
const LARGEST: u64 = 64 * 1024 * 1024;
/// Files that are open at once.
const OPEN: usize = 16;

/// Gives notes to the thread. Cheap to clone; the thread ends when the last of them is gone.
#[derive(Clone)]
pub struct Recorder {
    notes: SyncSender<(RunId, Note)>,
    missed: Arc<AtomicU64>,
}

impl Recorder {
    /// The handle ends when everything is written, after all recorders are gone.
    pub fn start(store: &Path) -> (Recorder, JoinHandle<()>) {
        let (notes, inbox) = sync_channel(WAITING);
        let missed = Arc::new(AtomicU64::new(0));
        let diaries = Diaries { store: store.to_owned(), open: BTreeMap::new(), missed: missed.clone() };
        (Recorder { notes, missed }, std::thread::spawn(move || diaries.write(&inbox)))
    }

    pub fn note(&self, run: RunId, note: Note) {
        if self.notes.try_send((run, note)).is_err() {
            self.missed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

struct Diaries {
    store: PathBuf,
    open: BTreeMap<RunId, Diary>,
    missed: Arc<AtomicU64>,
}

impl Diaries {
    fn write(mut self, inbox: &Receiver<(RunId, Note)>) {
        while let Ok((run, note)) = inbox.recv() {
            self.add(run, &note);
            while let Ok((run, note)) = inbox.try_recv() {
                self.add(run, &note);
            }
            // A disk that is full loses notes and nothing else: the store says what the matter is.
            self.open.values_mut().for_each(|diary| drop(diary.file.flush()));
        }
    }

    fn add(&mut self, run: RunId, note: &Note) {
        if self.open.len() == OPEN && !self.open.contains_key(&run) {
            self.open.clear();
        }
        let diary = match self.open.entry(run) {
            std::collections::btree_map::Entry::Occupied(open) => open.into_mut(),
            std::collections::btree_map::Entry::Vacant(place) => match Diary::open(&self.store, run) {
                Ok(diary) => place.insert(diary),
                Err(_) => {
                    self.missed.fetch_add(1, Ordering::Relaxed);
                    return;
                }
            },
        };
        match self.missed.swap(0, Ordering::Relaxed) {
            0 => {}
            missed => diary.add(&Note { at: note.at, task: None, what: What::Missed(missed) }),
        }
        diary.add(note);
    }
}

struct Diary {
    file: BufWriter<File>,
    size: u64,
}

impl Diary {
    fn open(store: &Path, run: RunId) -> std::io::Result<Diary> {
        std::fs::create_dir_all(folder(store))?;
        let path = file(store, run);
        let file = File::options().append(true).create(true).open(&path)?;
        let size = file.metadata()?.len();
        let mut diary = Diary { file: BufWriter::new(file), size };
        if size > 0 {
            // A process that was killed may have left half a line.
            diary.file.write_all(b"\n")?;
        }
        Ok(diary)
    }

    fn add(&mut self, note: &Note) {
        if self.size > LARGEST {
            return;
        }
        let Ok(mut line) = serde_json::to_vec(note) else { return };
        line.push(b'\n');
        self.size += line.len() as u64;
        if self.size > LARGEST
            && let Ok(full) = serde_json::to_vec(&Note { at: note.at, task: None, what: What::Full {} })
        {
            line = full;
        }
        drop(self.file.write_all(&line));
    }
}

#[cfg(test)]
mod tests {
    use super::super::Reading;
    use super::*;
    use tidegate_core::time::Moment;

    fn note(text: &str) -> Note {
        let what = What::Happened { id: "1.1".into(), event: text.into(), more: Default::default() };
        Note { at: Moment(7), task: None, what }
    }

    fn written(store: &Path, run: RunId) -> Vec<Note> {
        let mut reading = Reading::open(store, run).unwrap();
        std::iter::from_fn(|| reading.next().unwrap()).collect()
    }

    #[test]
    fn each_run_has_its_own_and_half_a_line_harms_nobody() {
        let directory = tempfile::tempdir().unwrap();
        let store = directory.path().join("state.db");
        let (recorder, thread) = Recorder::start(&store);
        for run in 0..40 {
            recorder.note(RunId(run % 20), note(&format!("{run}")));
        }
        drop(recorder);
        thread.join().unwrap();
        assert_eq!(written(&store, RunId(3)), [note("3"), note("23")]);
        let mut runs = super::super::runs(&store);
        runs.sort();
        assert_eq!(runs, (0..20).map(RunId).collect::<Vec<_>>());

        let path = file(&store, RunId(3));
        std::fs::write(&path, &std::fs::read(&path).unwrap()[..60]).unwrap();
        let (recorder, thread) = Recorder::start(&store);
        recorder.note(RunId(3), note("after"));
        drop(recorder);
        thread.join().unwrap();
        assert_eq!(written(&store, RunId(3)), [note("3"), note("after")]);
    }

    #[test]
    fn what_is_too_much_is_said_once() {
        let directory = tempfile::tempdir().unwrap();
        let store = directory.path().join("state.db");
        let mut diary = Diary::open(&store, RunId(1)).unwrap();
        diary.size = LARGEST - 100;
        ["fits", "no longer", "nor this"].iter().for_each(|text| diary.add(&note(text)));
        drop(diary);
        let full = Note { at: Moment(7), task: None, what: What::Full {} };
        assert_eq!(written(&store, RunId(1)), [note("fits"), full]);
    }
}
