//! Reads a diary from its beginning, as far as it is written.

use super::file;
use super::note::Note;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use tidegate_core::ids::RunId;

/// Where somebody is in a diary.
pub struct Reading {
    file: BufReader<File>,
    /// The beginning of a line whose end was not there yet.
    begun: Vec<u8>,
}

impl Reading {
    pub fn open(store: &Path, run: RunId) -> io::Result<Reading> {
        Ok(Reading { file: BufReader::new(File::open(file(store, run))?), begun: Vec::new() })
    }

    /// The next note; nothing if it is not written yet. What is no note, such as half of one, is passed over.
    pub fn next(&mut self) -> io::Result<Option<Note>> {
        loop {
            if self.file.read_until(b'\n', &mut self.begun)? == 0 || !self.begun.ends_with(b"\n") {
                return Ok(None);
            }
            let note = serde_json::from_slice(&self.begun).ok();
            self.begun.clear();
            if note.is_some() {
                return Ok(note);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_line_is_read_when_it_is_whole() {
        let directory = tempfile::tempdir().unwrap();
        let store = directory.path().join("state.db");
        let path = file(&store, RunId(1));
        std::fs::create_dir(path.parent().unwrap()).unwrap();
        let mut written = File::create(path).unwrap();
        let mut reading = Reading::open(&store, RunId(1)).unwrap();
        written.write_all(b"\nnonsense\n{\"at\":1,\"mis").unwrap();
        assert_eq!(reading.next().unwrap(), None);
        written.write_all(b"sed\":3}\n").unwrap();
        let note = reading.next().unwrap().unwrap();
        assert_eq!(note.what, super::super::What::Missed(3));
        assert_eq!(reading.next().unwrap(), None);
    }
}
