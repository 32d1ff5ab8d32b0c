//! Places in a file, counted in bytes.

use std::ops::Range;

/// A piece of one of the files that were given, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Span {
    pub start: usize,
    pub end: usize,
}

impl Span {
    pub fn new(start: usize, end: usize) -> Span {
        Span { start, end: end.max(start) }
    }

    pub fn range(self) -> Range<usize> {
        self.start..self.end
    }
}

/// One file: its name, its text, the pack it is part of, and where its lines start.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub name: String,
    pub text: String,
    pub pack: Option<String>,
    lines: Vec<usize>,
}

impl Source {
    pub fn new(name: &str, text: String, pack: Option<&str>) -> Source {
        let lines =
            std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect::<Vec<_>>();
        Source { name: name.to_owned(), text, pack: pack.map(str::to_owned), lines }
    }

    /// Line and column from 1; the column counts characters.
    pub fn place(&self, at: usize) -> (u32, u32) {
        let line = self.lines.partition_point(|&start| start <= at).max(1);
        let start = self.lines[line - 1];
        let column = self.text.get(start..at).map_or(0, |before| before.chars().count());
        (line as u32, column as u32 + 1)
    }

    pub fn line(&self, at: usize) -> u32 {
        self.place(at).0
    }

    /// The part of `span` that can be underlined: inside the text, on one line, on character boundaries.
    ///
    /// A block mapping spans many lines; pointing at its first line is what helps.
    pub fn underline(&self, span: Span) -> Span {
        let start = floor(&self.text, span.start.min(self.text.len()));
        let end = floor(&self.text, span.end.clamp(start, self.text.len()));
        let line_end = self.text[start..].find('\n').map_or(self.text.len(), |at| start + at);
        let end = end.min(line_end);
        let end = start + self.text[start..end].trim_end().len();
        if end == start && start < line_end {
            let next = self.text[start..].chars().next().map_or(0, char::len_utf8);
            return Span::new(start, start + next);
        }
        Span::new(start, end)
    }

    pub fn conceal(&mut self, span: Span) {
        let star = |byte| if byte == b'\n' { '\n' } else { '*' };
        let stars: String = self.slice(span).bytes().map(star).collect();
        if !stars.is_empty() {
            self.text.replace_range(span.range(), &stars);
        }
    }

    pub fn slice(&self, span: Span) -> &str {
        self.text.get(span.range()).unwrap_or_default()
    }
}

fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_lines_and_characters_from_one() {
        let source = Source::new("a", "ab\nçd\n".to_owned(), None);
        assert_eq!(source.place(0), (1, 1));
        assert_eq!(source.place(3), (2, 1));
        assert_eq!(source.place(5), (2, 2));
        assert_eq!(source.place(7), (3, 1));
    }

    #[test]
    fn underlines_stay_on_their_line() {
        let source = Source::new("a", "ab: \n  c: 1\n".to_owned(), None);
        assert_eq!(source.underline(Span::new(0, 11)), Span::new(0, 3));
        assert_eq!(source.underline(Span::new(90, 99)), Span::new(12, 12));
        assert_eq!(source.underline(Span::new(1, 1)), Span::new(1, 2), "something must be underlined");
    }
}
