//! Writing to people and to programs. That nobody hears what is said is no reason to stop working; that data is lost is.

use crate::failure::{Exit, Failure};
use std::fmt::Display;
use std::io::{self, Write};

/// To people: on stderr, with colours where they are wanted.
pub fn say(text: impl Display) {
    let _ = writeln!(anstream::stderr().lock(), "{text}");
}

/// To programs: on stdout.
///
/// As with the well-kept tools: what cannot be written is an error, said and with an exit code. A reader that has
/// gone away, as `head` does, has what it wanted; that ends quietly, as if by SIGPIPE, and still not with success.
/// A stdout that was closed before this process started is `/dev/null` to it, and takes everything.
pub fn print(text: impl Display) -> Result<(), Failure> {
    let mut stdout = anstream::stdout().lock();
    writeln!(stdout, "{text}").and_then(|()| stdout.flush()).map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::quiet(Exit::ReaderGone),
        _ => Failure::new("output", format!("stdout cannot be written: {error}")).exit(Exit::NotWritten),
    })
}
