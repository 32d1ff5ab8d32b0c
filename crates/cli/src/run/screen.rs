//! A part of the terminal that is painted over and over, each time in one write, so that nothing flickers.

use crate::line::Line;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};

/// Beginning and end of a picture that terminals which know how to show at once.
const BEGIN: &str = "\x1b[?2026h";
const END: &str = "\x1b[?2026l";
const HIDE_CURSOR: &str = "\x1b[?25l";
const SHOW_CURSOR: &str = "\x1b[?25h";

/// Dropping it leaves what was painted last on the screen, and the cursor below it.
pub struct Screen {
    /// Lines of the last picture, above the cursor.
    painted: usize,
    colors: bool,
}

impl Screen {
    /// Nothing if stderr is not a terminal that can be painted on.
    pub fn open() -> Option<Screen> {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb" || term.is_empty());
        if dumb || !io::stderr().is_terminal() {
            return None;
        }
        let colors = anstream::AutoStream::choice(&io::stderr()) != anstream::ColorChoice::Never;
        Some(Screen { painted: 0, colors })
    }

    /// Columns and rows.
    pub fn size() -> (usize, usize) {
        match rustix::termios::tcgetwinsize(io::stderr()) {
            Ok(size) if size.ws_col > 0 => (size.ws_col.into(), size.ws_row.into()),
            _ => (80, 24),
        }
    }

    pub fn paint(&mut self, lines: &[Line]) {
        let mut text = String::from(BEGIN);
        text.push_str(HIDE_CURSOR);
        if self.painted > 0 {
            // Writing to a string cannot fail.
            let _ = write!(text, "\x1b[{}A", self.painted);
        }
        text.push('\r');
        for line in lines {
            let line = if self.colors { line.to_string() } else { line.plain() };
            text.push_str(&line);
            text.push_str("\x1b[K\n");
        }
        text.push_str("\x1b[J");
        text.push_str(END);
        self.painted = lines.len();
        // A terminal that is gone cannot be told so.
        let _ = io::stderr().write_all(text.as_bytes());
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = io::stderr().write_all(SHOW_CURSOR.as_bytes());
    }
}
