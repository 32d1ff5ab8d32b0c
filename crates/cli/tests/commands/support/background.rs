//! An invocation that goes on while the test does something else.

use std::io::{BufRead, BufReader, Lines, Read};
use std::process::{Child, ChildStderr, Command, Stdio};

pub struct Background {
    child: Child,
    stderr: Lines<BufReader<ChildStderr>>,
    heard: Vec<String>,
    status: i32,
}

impl Background {
    pub fn start(mut command: Command, status: i32) -> Background {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary starts");
        let stderr = BufReader::new(child.stderr.take().expect("it is a pipe")).lines();
        Background { child, stderr, heard: Vec::new(), status }
    }

    /// Reads what it says until a line holds this, and returns that line.
    pub fn until(&mut self, text: &str) -> String {
        for line in self.stderr.by_ref() {
            let line = line.expect("it writes text");
            self.heard.push(line.clone());
            if line.contains(text) {
                return line;
            }
        }
        panic!("it ended without saying {text:?}:\n{}", self.heard.join("\n"));
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).expect("it runs");
    }

    /// Reads so many lines, or all, and kills it. How it ended; nothing if by that.
    pub fn kill_after(mut self, lines: usize) -> Option<i32> {
        self.heard.extend(self.stderr.by_ref().take(lines).map(|line| line.expect("it writes text")));
        // It has not been waited for, so its number is still its own.
        self.signal(rustix::process::Signal::KILL);
        self.child.wait().expect("it ends").code()
    }

    /// No file that it writes may grow beyond so many bytes.
    pub fn limit_files_to(&self, bytes: Option<u64>) {
        let pid = rustix::process::Pid::from_child(&self.child);
        let limit = rustix::process::Rlimit { current: bytes, maximum: None };
        rustix::process::prlimit(Some(pid), rustix::process::Resource::Fsize, limit).expect("it runs");
    }

    /// Waits for its end; everything it has said.
    pub fn finish(mut self) -> String {
        self.heard.extend(self.stderr.by_ref().map(|line| line.expect("it writes text")));
        let mut stdout = String::new();
        let pipe = self.child.stdout.as_mut().expect("it is a pipe");
        pipe.read_to_string(&mut stdout).expect("it writes text");
        let status = self.child.wait().expect("it ends");
        let heard = self.heard.join("\n");
        assert_eq!(status.code().unwrap_or(-1), self.status, "{heard}");
        heard
    }
}

/// A test that fails leaves nothing running.
impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
