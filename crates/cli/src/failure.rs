//! What can go wrong, in one form: `error[code]: sentence`, the place, help.

use crate::out::say;
use anstyle::{AnsiColor, Style};
use std::fmt;
use std::path::Path;
use std::process::ExitCode;
use tidegate::Error;
use tidegate_flow::Diagnostics;
use tidegate_store::StoreError;

/// How the process ends. Scripts rely on these numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    Success = 0,
    /// The run failed, was cancelled or timed out.
    Failed = 1,
    /// Wrong usage, or an invalid file.
    Invalid = 2,
    NotFound = 3,
    Refused = 4,
    /// The store or engine cannot be reached.
    Unreachable = 5,
    /// What is to happen has not happened yet.
    TimedOut = 6,
    /// What was asked for is there, but stdout did not take it: what `sysexits.h` has for that.
    NotWritten = 74,
    Interrupted = 130,
    /// The reader of stdout went away before it had everything: what a shell shows for SIGPIPE.
    ReaderGone = 141,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}

#[derive(Debug)]
pub struct Failure {
    pub exit: Exit,
    text: Text,
}

#[derive(Debug)]
enum Text {
    Said {
        code: &'static str,
        sentence: String,
        place: Option<String>,
        help: Option<String>,
    },
    /// All errors of a file, drawn with their places.
    Drawn(Box<Diagnostics>),
    /// The exit code says it.
    Nothing,
}

impl Failure {
    pub fn new(code: &'static str, sentence: impl Into<String>) -> Failure {
        let text = Text::Said { code, sentence: sentence.into(), place: None, help: None };
        Failure { exit: Exit::Unreachable, text }
    }

    pub fn quiet(exit: Exit) -> Failure {
        Failure { exit, text: Text::Nothing }
    }

    pub fn exit(mut self, exit: Exit) -> Failure {
        self.exit = exit;
        self
    }

    pub fn at(mut self, path: impl fmt::Display) -> Failure {
        if let Text::Said { place, .. } = &mut self.text {
            *place = Some(path.to_string());
        }
        self
    }

    pub fn help(mut self, text: impl Into<String>) -> Failure {
        if let Text::Said { help, .. } = &mut self.text {
            *help = Some(text.into());
        }
        self
    }

    /// A store that cannot be opened or read.
    pub fn store(error: &StoreError, path: &Path) -> Failure {
        let failure = match error {
            StoreError::InUse(_) => Failure::new("in-use", error.to_string())
                .help("choose another store with --store PATH; `tidegate why` shows what waits in this one"),
            StoreError::Newer { .. } => Failure::new("newer-store", error.to_string())
                .help("use the newer version, or another store with --store PATH"),
            StoreError::Older { .. } => Failure::new("older-store", error.to_string())
                .help("end the earlier version that uses it, or choose another store with --store PATH"),
            StoreError::Unusable(_) => Failure::new("unusable", error.to_string()).help(
                "see that the disk has room and can be written, or choose another store with --store PATH",
            ),
            StoreError::Unknown(_) | StoreError::Broken(_) => Failure::new("store", error.to_string()),
        };
        failure.at(path.display())
    }

    /// A store in a database that cannot be reached or read.
    pub fn database(error: &StoreError, url: &str) -> Failure {
        let failure = match error {
            StoreError::Unknown(_) | StoreError::Unusable(_) => Failure::new("unusable", error.to_string())
                .help("see that the server runs, and that user, password and database are right"),
            StoreError::Newer { .. } => {
                Failure::new("newer-store", error.to_string()).help("use the newer version")
            }
            StoreError::Older { .. } => Failure::new("older-store", error.to_string())
                .help("a server of this version brings it forward when it starts"),
            StoreError::Broken(_) | StoreError::InUse(_) => Failure::new("store", error.to_string()),
        };
        // Nobody has to see who may enter, and how.
        let place = url.rsplit_once('@').map_or(url, |(_, place)| place);
        let place = place.split_once('?').map_or(place, |(place, _)| place);
        failure.at(place)
    }

    pub fn engine(error: &Error, path: &Path) -> Failure {
        match error {
            Error::Store(error) | Error::Outage(error) => Failure::store(error, path),
            Error::Refused(refusal) => Failure::new("refused", refusal.to_string()).exit(Exit::Refused),
            Error::UnknownRun(_) => {
                Failure::new("not-found", error.to_string()).at(path.display()).exit(Exit::NotFound)
            }
            error => Failure::new("engine", error.to_string()).at(path.display()),
        }
    }

    /// Says it on stderr.
    pub fn report(&self) {
        if !matches!(self.text, Text::Nothing) {
            say(self.to_string().trim_end());
        }
    }
}

impl From<Diagnostics> for Failure {
    fn from(diagnostics: Diagnostics) -> Failure {
        Failure { exit: Exit::Invalid, text: Text::Drawn(Box::new(diagnostics)) }
    }
}

/// With colours, which the stream takes out where they are not wanted.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (code, sentence, place, help) = match &self.text {
            Text::Nothing => return Ok(()),
            Text::Drawn(diagnostics) => return f.write_str(&diagnostics.render(true)),
            Text::Said { code, sentence, place, help } => (code, sentence, place, help),
        };
        let bold = Style::new().bold();
        let red = AnsiColor::BrightRed.on_default().bold();
        let cyan = AnsiColor::BrightCyan.on_default().bold();
        writeln!(f, "{red}error[{code}]{red:#}{bold}: {sentence}{bold:#}")?;
        if let Some(place) = place {
            writeln!(f, "  --> {place}")?;
        }
        if let Some(help) = help {
            writeln!(f, "{cyan}help{cyan:#}: {help}")?;
        }
        Ok(())
    }
}
