//! Appends records to a file that several threads and processes share.
//!
//! Every write is one `write` to a file opened for appending, so that records of different processes never mix.

use crate::record::{Record, SIZE};
use std::cell::Cell;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// When records reach the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// At once: a process that is killed leaves every record it made. For whatever kills processes.
    AtOnce,
    /// A few hundred at a time, and the rest when the recorder is dropped or told to: 200,000 jobs a second hardly
    /// notice it, and a process that is killed takes its last ones along. For measurements that kill nobody.
    Gathered,
}

/// Threads that gather without getting into each other's way.
const SHARDS: usize = 16;
/// Bytes gathered before they are written.
const GATHERED: usize = 512 * SIZE;

pub struct Recorder {
    file: File,
    mode: Mode,
    shards: [Mutex<Vec<u8>>; SHARDS],
}

impl Recorder {
    /// Opens a file of records, and makes it if it is not there.
    pub fn open(path: &Path, mode: Mode) -> io::Result<Recorder> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Recorder { file, mode, shards: Default::default() })
    }

    /// # Panics
    /// If the file cannot be written: a judge that misses records would be blind without knowing it.
    pub fn append(&self, record: &Record) {
        let bytes = record.encode();
        match self.mode {
            Mode::AtOnce => self.write(&bytes),
            Mode::Gathered => {
                let mut shard = self.shards[shard()].lock().unwrap_or_else(PoisonError::into_inner);
                shard.extend_from_slice(&bytes);
                if shard.len() >= GATHERED {
                    self.write(&shard);
                    shard.clear();
                }
            }
        }
    }

    /// Writes what is gathered.
    pub fn flush(&self) {
        for shard in &self.shards {
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            if !shard.is_empty() {
                self.write(&shard);
                shard.clear();
            }
        }
    }

    fn write(&self, bytes: &[u8]) {
        let written = (&self.file).write(bytes).expect("the file of records can be written");
        assert_eq!(written, bytes.len(), "records are written whole");
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.flush();
    }
}

/// The shard of this thread.
fn shard() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static MINE: Cell<Option<usize>> = const { Cell::new(None) });
    MINE.with(|mine| {
        let shard = mine.get().unwrap_or_else(|| NEXT.fetch_add(1, Ordering::Relaxed) % SHARDS);
        mine.set(Some(shard));
        shard
    })
}

/// All records of a file, in the order in which they were written.
pub fn read(path: &Path) -> io::Result<Vec<Record>> {
    read_after(path, 0)
}

/// As [`read`], without the first `seen`.
pub fn read_after(path: &Path, seen: usize) -> io::Result<Vec<Record>> {
    let mut file = File::open(path)?;
    file.seek(io::SeekFrom::Start((seen * SIZE) as u64))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let (whole, rest) = bytes.as_chunks::<SIZE>();
    let damaged = |at: usize| {
        io::Error::new(io::ErrorKind::InvalidData, format!("record {at} of {} is damaged", path.display()))
    };
    if !rest.is_empty() {
        return Err(damaged(whole.len()));
    }
    whole.iter().enumerate().map(|(at, bytes)| Record::decode(bytes).ok_or_else(|| damaged(at))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Fact;

    #[test]
    fn what_several_threads_append_is_all_there() {
        for mode in [Mode::AtOnce, Mode::Gathered] {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("records");
            let recorder = Recorder::open(&path, mode).expect("a new file");
            std::thread::scope(|scope| {
                for thread in 0..4 {
                    let recorder = &recorder;
                    scope.spawn(move || {
                        (0..1_000).for_each(|n| {
                            recorder.append(&Record::new(Fact::Started, thread * 1_000 + n, 1));
                        });
                    });
                }
            });
            recorder.flush();
            let mut jobs: Vec<u64> = read(&path).expect("records").iter().map(|record| record.job).collect();
            jobs.sort_unstable();
            assert_eq!(jobs, (0..4_000).collect::<Vec<_>>(), "{mode:?}");
        }
    }

    #[test]
    fn at_once_means_before_the_next_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("records");
        let recorder = Recorder::open(&path, Mode::AtOnce).expect("a new file");
        recorder.append(&Record::new(Fact::Ended, 7, 1));
        assert_eq!(read(&path).expect("records"), [Record::new(Fact::Ended, 7, 1)]);
        recorder.append(&Record::new(Fact::Ended, 8, 2));
        assert_eq!(read_after(&path, 1).expect("records"), [Record::new(Fact::Ended, 8, 2)]);
        std::fs::write(&path, [0; SIZE + 1]).expect("writable");
        assert!(read(&path).is_err(), "half a record is noticed");
    }
}
