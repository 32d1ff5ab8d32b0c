//! A named pipe: opening it waits for the other side, reading it to its end waits until nobody holds it.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::process::Command;

pub struct Pipe(PathBuf);

impl Pipe {
    pub fn make(path: PathBuf) -> Pipe {
        let status = Command::new("mkfifo").arg(&path).status().expect("mkfifo is there");
        assert!(status.success());
        Pipe(path)
    }

    /// Lets whoever reads it go on.
    pub fn release(&self) {
        drop(File::options().write(true).open(&self.0).expect("somebody reads"));
    }

    /// Waits until a process has opened it to write; then dropping or reading the answer tells when it is gone.
    pub fn held(&self) -> Held {
        Held(File::open(&self.0).expect("somebody writes"))
    }
}

/// The reading end of a pipe that some process holds.
pub struct Held(File);

impl Held {
    /// Returns when no process is left that holds the other end.
    pub fn until_gone(mut self) {
        self.0.read_to_end(&mut Vec::new()).expect("the pipe can be read");
    }
}
