//! Rows under headings: aligned for people, with tabs between for programs.

use crate::line::{Line, Tone};
use std::io::IsTerminal;
use unicode_width::UnicodeWidthStr;

pub struct Table {
    headings: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new(headings: &[&'static str]) -> Table {
        Table { headings: headings.to_vec(), rows: Vec::new() }
    }

    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        debug_assert_eq!(N, self.headings.len());
        self.rows.push(cells.to_vec());
    }

    /// For whoever reads stdout.
    pub fn lines(&self) -> Vec<String> {
        match std::io::stdout().is_terminal() {
            true => self.aligned().iter().map(Line::to_string).collect(),
            false => self.with_tabs(),
        }
    }

    fn aligned(&self) -> Vec<Line> {
        let width = |at: usize| {
            let cells = self.rows.iter().map(|row| row[at].width());
            cells.chain([self.headings[at].width()]).max().unwrap_or(0)
        };
        let starts: Vec<usize> = (0..self.headings.len())
            .scan(0, |start, at| {
                let this = *start;
                *start += width(at) + 2;
                Some(this)
            })
            .collect();
        let line = |cells: &mut dyn Iterator<Item = &str>, tone| {
            cells.zip(&starts).fold(Line::new(), |line, (cell, &start)| line.pad(start).with(tone, cell))
        };
        let head = line(&mut self.headings.iter().copied(), Tone::Dim);
        let rows = self.rows.iter().map(|row| line(&mut row.iter().map(String::as_str), Tone::Plain));
        [head].into_iter().chain(rows).collect()
    }

    fn with_tabs(&self) -> Vec<String> {
        // A cell cannot hold a tab, or anything else that is not seen.
        let clean = |cell: &String| Line::new().with(Tone::Plain, cell).plain();
        let rows = self.rows.iter().map(|row| row.iter().map(clean).collect::<Vec<_>>().join("\t"));
        [self.headings.join("\t")].into_iter().chain(rows).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_get_columns_and_programs_get_tabs() {
        let mut table = Table::new(&["LIMIT", "USED"]);
        table.row(["pool:größe".to_owned(), "1/2".to_owned()]);
        table.row(["runs\t\u{1b}[2J".to_owned(), "12/20".to_owned()]);
        let aligned: Vec<String> = table.aligned().iter().map(Line::plain).collect();
        assert_eq!(aligned, ["LIMIT       USED", "pool:größe  1/2", "runs        12/20"]);
        assert_eq!(table.with_tabs(), ["LIMIT\tUSED", "pool:größe\t1/2", "runs\t12/20"]);
    }
}
