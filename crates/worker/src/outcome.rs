//! How a process ended, in the words of the protocol.

use crate::guardian::wire::Exit;
use crate::output::Capture;
use rustix::process::Signal;
use tidegate_core::protocol::{Failure, Outcome};

pub(crate) fn of_process(exit: Exit, capture: &Capture) -> Outcome {
    let (what, cause) = match exit {
        Exit { stopped: true, .. } => return Outcome::Stopped,
        Exit { code: Some(0), .. } => return Outcome::Succeeded(capture.payload(Some(0))),
        Exit { code: Some(code), .. } => (format!("exit code {code}"), format!("exit:{code}")),
        Exit { signal: Some(signal), .. } => {
            (format!("killed by {}", name(signal)), format!("signal:{signal}"))
        }
        Exit { .. } => ("ended in an unknown way".to_owned(), "exit".to_owned()),
    };
    let error = match capture.complaint() {
        Some(complaint) => format!("{what}: {complaint}"),
        None => what,
    };
    let failure = Failure { output: Some(capture.payload(exit.code)), ..Failure::new(error) };
    Outcome::Failed(failure.caused_by(cause))
}

fn name(signal: i32) -> String {
    const NAMES: [(Signal, &str); 14] = [
        (Signal::HUP, "SIGHUP"),
        (Signal::INT, "SIGINT"),
        (Signal::QUIT, "SIGQUIT"),
        (Signal::ILL, "SIGILL"),
        (Signal::ABORT, "SIGABRT"),
        (Signal::BUS, "SIGBUS"),
        (Signal::FPE, "SIGFPE"),
        (Signal::KILL, "SIGKILL"),
        (Signal::SEGV, "SIGSEGV"),
        (Signal::PIPE, "SIGPIPE"),
        (Signal::ALARM, "SIGALRM"),
        (Signal::TERM, "SIGTERM"),
        (Signal::XCPU, "SIGXCPU"),
        (Signal::XFSZ, "SIGXFSZ"),
    ];
    let known = NAMES.iter().find(|(known, _)| known.as_raw() == signal);
    known.map_or_else(|| format!("signal {signal}"), |(_, name)| (*name).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guardian::wire::Stream;

    fn error(code: Option<i32>, signal: Option<i32>, stderr: &str) -> String {
        let mut capture = Capture::default();
        capture.push(Stream::Stderr, stderr, false);
        match of_process(Exit { code, signal, stopped: false }, &capture) {
            Outcome::Failed(Failure { error, output: Some(_), .. }) => error,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_failure_says_what_happened_and_what_the_process_said() {
        assert_eq!(error(Some(3), None, "no such table\n"), "exit code 3: no such table");
        assert_eq!(error(Some(3), None, ""), "exit code 3");
        assert_eq!(error(None, Some(9), ""), "killed by SIGKILL");
        assert_eq!(error(None, Some(40), "bye"), "killed by signal 40: bye");
    }

    #[test]
    fn whoever_was_asked_to_stop_has_stopped_whatever_its_code() {
        let exit = Exit { code: Some(0), signal: None, stopped: true };
        assert_eq!(of_process(exit, &Capture::default()), Outcome::Stopped);
    }
}
