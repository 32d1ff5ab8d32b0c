//! A line of styled text that knows how wide it is.

use anstyle::{AnsiColor, Style};
use std::fmt;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// What a piece of text means; the colour follows from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tone {
    Plain,
    Strong,
    Dim,
    Good,
    Bad,
    Busy,
    Waits,
}

impl Tone {
    fn style(self) -> Style {
        match self {
            Tone::Plain => Style::new(),
            Tone::Strong => Style::new().bold(),
            Tone::Dim => Style::new().dimmed(),
            Tone::Good => AnsiColor::Green.on_default(),
            Tone::Bad => AnsiColor::Red.on_default(),
            Tone::Busy => AnsiColor::Cyan.on_default(),
            Tone::Waits => AnsiColor::Yellow.on_default(),
        }
    }
}

#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Line(Vec<(Tone, String)>);

impl Line {
    pub fn new() -> Line {
        Line::default()
    }

    /// With this piece behind; what cannot be shown on one line is left out.
    pub fn with(mut self, tone: Tone, text: impl AsRef<str>) -> Line {
        let text = printable(text.as_ref());
        if !text.is_empty() {
            self.0.push((tone, text));
        }
        self
    }

    /// With blanks behind, up to a column.
    pub fn pad(self, column: usize) -> Line {
        let blanks = column.saturating_sub(self.width());
        self.with(Tone::Plain, " ".repeat(blanks))
    }

    pub fn width(&self) -> usize {
        self.0.iter().map(|(_, text)| text.width()).sum()
    }

    /// As much of it as fits; what was cut off shows as `…`.
    pub fn clip(self, width: usize) -> Line {
        if self.width() <= width {
            return self;
        }
        let mut left = width.saturating_sub(1);
        let mut clipped = Line::new();
        for (tone, text) in self.0 {
            let mut fits = String::new();
            for letter in text.chars() {
                let wide = letter.width().unwrap_or(0);
                if wide > left {
                    return clipped.with(tone, fits + "…");
                }
                left -= wide;
                fits.push(letter);
            }
            clipped = clipped.with(tone, fits);
        }
        clipped
    }

    pub fn plain(&self) -> String {
        let text: String = self.0.iter().map(|(_, text)| text.as_str()).collect();
        text.trim_end().to_owned()
    }
}

/// With colours, without blanks at the end.
impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let last = self.0.iter().rposition(|(_, text)| !text.trim_end().is_empty());
        for (index, (tone, text)) in self.0.iter().enumerate().take(last.map_or(0, |last| last + 1)) {
            let text = if last == Some(index) { text.trim_end() } else { text };
            let style = tone.style();
            write!(f, "{style}{text}{style:#}")?;
        }
        Ok(())
    }
}

/// Text of programs may hold anything: colours are dropped, tabs are blanks, and nothing moves the cursor.
fn printable(text: &str) -> String {
    let text = anstream::adapter::strip_str(text).to_string();
    let mut clean = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\t' => clean.push_str("    "),
            '\n' => clean.push(' '),
            letter if letter.is_control() => {}
            letter => clean.push(letter),
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_by_its_width_on_the_screen() {
        let line = Line::new().with(Tone::Good, "ab").with(Tone::Plain, "船船c");
        assert_eq!(line.width(), 7);
        assert_eq!(line.clone().clip(7).plain(), "ab船船c");
        assert_eq!(line.clone().clip(6).plain(), "ab船…");
        assert_eq!(line.clone().clip(3).plain(), "ab…");
        assert_eq!(line.pad(9).width(), 9);
    }

    #[test]
    fn programs_cannot_paint_over_the_screen() {
        let line = Line::new().with(Tone::Plain, "a\x1b[2J\x1b[31mb\tc\rd\ne");
        assert_eq!(line.plain(), "ab    cd e");
    }
}
