//! One invocation: files, arguments, and what is expected of it.

use super::background::Background;
use super::pipe::Pipe;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// A directory with files, in which the binary is run as often as needed.
pub struct Test {
    directory: TempDir,
    args: Vec<String>,
    status: i32,
}

/// What came out of it, as it was.
pub struct Outcome {
    pub stdout: String,
    pub stderr: String,
}

impl Test {
    pub fn new() -> Test {
        let directory = tempfile::tempdir().expect("there is room for a directory");
        Test { directory, args: Vec::new(), status: 0 }
    }

    pub fn file(self, path: &str, text: &str) -> Test {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().expect("it is in the directory")).expect("it can be made");
        std::fs::write(path, text).expect("it can be written");
        self
    }

    /// A named pipe, on which steps and the test wait for each other.
    pub fn pipe(&self, name: &str) -> Pipe {
        Pipe::make(self.path(name))
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.directory.path().join(path)
    }

    /// The next invocation; forgets the one before.
    pub fn args<'a>(mut self, args: impl IntoIterator<Item = &'a str>) -> Test {
        self.args = args.into_iter().map(str::to_owned).collect();
        self.status = 0;
        self
    }

    /// The exit code that is expected.
    pub fn status(mut self, status: i32) -> Test {
        self.status = status;
        self
    }

    pub fn run(&self) -> Outcome {
        self.run_as(self.command())
    }

    pub fn run_as(&self, mut command: Command) -> Outcome {
        let output = command.stdin(Stdio::null()).output().expect("the binary starts");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it writes text");
        let outcome = Outcome { stdout: text(output.stdout), stderr: text(output.stderr) };
        let (args, status) = (&self.args, output.status.code());
        assert_eq!(status, Some(self.status), "{args:?}\n{}\n{}", outcome.stdout, outcome.stderr);
        outcome
    }

    pub fn start(&self) -> Background {
        Background::start(self.command(), self.status)
    }

    /// Another program, beside it.
    pub fn start_as(&self, command: Command, status: i32) -> Background {
        Background::start(command, status)
    }

    /// The ids of all that was submitted, newest first.
    pub fn ids(self) -> (Test, Vec<String>) {
        let test = self.args(["runs", "list", "-o", "json"]);
        let id = |line: &str| -> String {
            let run: serde_json::Value = serde_json::from_str(line).expect("it is JSON");
            run["id"].as_str().expect("it has an id").to_owned()
        };
        let ids = test.run().stdout.lines().map(id).collect();
        (test, ids)
    }

    /// Starts it, kills it once a step of it holds the pipe `alive` and says that it is ready, and waits until nothing of it
    /// is left.
    pub fn leave(mut self) -> Test {
        self.status = -1;
        let alive = self.pipe("alive");
        let mut run = self.start();
        let held = alive.held();
        run.until("| ready");
        run.signal(rustix::process::Signal::KILL);
        held.until_gone();
        run.finish();
        std::fs::remove_file(self.path("alive")).expect("nobody holds it");
        self
    }

    /// Started so that [`Background::limit_files_to`] does not end it.
    pub fn start_limitable(&self) -> Background {
        Background::start(self.limitable(), self.status)
    }

    /// Started so that it, and whatever it starts, holds a pipe.
    pub fn start_holding(&self, pipe: &str) -> Background {
        let mut command = Command::new("sh");
        let script = format!("exec 3> {pipe}; exec \"$0\" \"$@\"");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_tidegate")]);
        Background::start(self.of(command), self.status)
    }

    pub fn command(&self) -> Command {
        self.of(Command::new(env!("CARGO_BIN_EXE_tidegate")))
    }

    /// Writes beyond the limit on the size of files, which may be given as FILE_LIMIT, fail and do not end it.
    pub fn limitable(&self) -> Command {
        let script = "trap '' XFSZ; ulimit -S -f ${FILE_LIMIT:-unlimited}; exec \"$0\" \"$@\"";
        let mut command = Command::new("sh");
        command.args(["-c", script, env!("CARGO_BIN_EXE_tidegate")]);
        self.of(command)
    }

    fn of(&self, mut command: Command) -> Command {
        command.args(&self.args).current_dir(self.directory.path());
        command
            .env_remove("NO_COLOR")
            .env_remove("CLICOLOR_FORCE")
            .env_remove("TIDEGATE_TOKEN")
            .env_remove("DATABASE_URL");
        command
    }

    /// All that is in the store and beside it.
    pub fn kept(&self) -> String {
        text_in(&self.path(".tidegate"))
    }

    pub fn directory(&self) -> &Path {
        self.directory.path()
    }
}

fn text_in(directory: &Path) -> String {
    let files =
        std::fs::read_dir(directory).expect("it is there").map(|file| file.expect("it can be read").path());
    let text = |path: PathBuf| match path.is_dir() {
        true => text_in(&path),
        false => String::from_utf8_lossy(&std::fs::read(path).expect("it can be read")).into_owned(),
    };
    files.map(text).collect()
}

/// Compares a text with the one in `snapshots`.
pub fn golden_as_it_is(name: &str, text: &str) {
    settings().bind(|| insta::assert_snapshot!(name, text));
}

/// Compares a text with the one in `snapshots`, without what differs every time: ids, times of day, durations,
/// numbers of processes.
pub fn golden(name: &str, text: &str) {
    let mut settings = settings();
    settings.add_filter(r"run_[0-9a-z]{26}", "run_ID");
    settings.add_filter(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "DATE");
    settings.add_filter(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "INSTANT");
    settings.add_filter(r"\d\d:\d\d:\d\d\.\d", "TIME");
    settings.add_filter(r" *\b(\d+m )?(\d+s )?\d+(\.\d+)?(ms|s)\b", " SPAN");
    settings.add_filter(r"process \d+", "process PID");
    settings.add_filter(r"cli-\d+-[0-9a-f]+", "cli-ID");
    settings.bind(|| insta::assert_snapshot!(name, text));
}

fn settings() -> insta::Settings {
    let mut settings = insta::Settings::clone_current();
    settings.set_omit_expression(true);
    settings.set_prepend_module_to_snapshot(false);
    settings.set_snapshot_path("../snapshots");
    settings
}
