//! Bytes of a pipe into lines of bounded length.

/// A longer line is handed on in pieces.
pub(super) const LONGEST: usize = 8 * 1024;

/// A line, or a piece of one that was too long or had no newline at the end of all output.
#[derive(Debug, PartialEq)]
pub(super) struct Piece {
    pub(super) text: String,
    pub(super) newline: bool,
}

/// What has been read of a line that has not ended yet.
#[derive(Default)]
pub(super) struct Lines {
    partial: Vec<u8>,
}

impl Lines {
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<Piece> {
        let mut pieces = Vec::new();
        for part in bytes.split_inclusive(|&byte| byte == b'\n') {
            let (text, newline) = match part.split_last() {
                Some((b'\n', text)) => (text, true),
                _ => (part, false),
            };
            self.partial.extend_from_slice(text);
            while self.partial.len() > LONGEST {
                let rest = self.partial.split_off(character_boundary(&self.partial, LONGEST));
                pieces.push(Piece { text: lossy(&self.partial), newline: false });
                self.partial = rest;
            }
            if newline {
                pieces.push(Piece { text: lossy(&self.partial), newline: true });
                self.partial.clear();
            }
        }
        pieces
    }

    pub(super) fn finish(self) -> Option<Piece> {
        (!self.partial.is_empty()).then(|| Piece { text: lossy(&self.partial), newline: false })
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The last place at or before `at` that does not cut a UTF-8 character in two; `at` itself if this is not UTF-8.
fn character_boundary(bytes: &[u8], at: usize) -> usize {
    (at.saturating_sub(3)..=at).rev().find(|&place| bytes[place] & 0b1100_0000 != 0b1000_0000).unwrap_or(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(chunks: &[&[u8]]) -> Vec<(String, bool)> {
        let mut lines = Lines::default();
        let mut pieces: Vec<Piece> = chunks.iter().flat_map(|chunk| lines.push(chunk)).collect();
        pieces.extend(lines.finish());
        pieces.into_iter().map(|piece| (piece.text, piece.newline)).collect()
    }

    #[test]
    fn lines_are_joined_across_reads() {
        assert_eq!(
            all(&[b"a", b"b\n\nc", b"\r\nd"]),
            [("ab".into(), true), ("".into(), true), ("c\r".into(), true), ("d".into(), false)]
        );
    }

    #[test]
    fn a_long_line_comes_in_pieces_without_cutting_a_character() {
        let line = format!("x{}\n", "é".repeat(LONGEST));
        let pieces = all(&[line.as_bytes()]);
        assert!(pieces.iter().all(|(text, _)| text.len() <= LONGEST && !text.contains('\u{fffd}')));
        let (last, others) = pieces.split_last().unwrap();
        assert!(last.1 && others.iter().all(|(_, newline)| !newline));
        assert_eq!(pieces.iter().map(|(text, _)| text.as_str()).collect::<String>() + "\n", line);
    }

    #[test]
    fn what_is_not_utf8_is_replaced_and_still_bounded() {
        let pieces = all(&[&[0x80; 3 * LONGEST]]);
        assert!(pieces.len() >= 3);
        assert_eq!(pieces.iter().map(|(text, _)| text.chars().count()).sum::<usize>(), 3 * LONGEST);
    }
}
