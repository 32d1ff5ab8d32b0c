//! Writing to people and to programs. A reader that has gone away is no reason to stop working.

use std::fmt::Display;
use std::io::Write;

/// To people: on stderr, with colours where they are wanted.
pub fn say(text: impl Display) {
    let _ = writeln!(anstream::stderr().lock(), "{text}");
}

/// To programs: on stdout.
pub fn print(text: impl Display) {
    let _ = writeln!(anstream::stdout().lock(), "{text}");
}
