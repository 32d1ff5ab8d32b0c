//! "Did you mean": the known word nearest to the one that was written.

/// The nearest of `known`, if it is near enough to be what was meant.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    // A word longer than any name is not a slip of the finger, and comparing it would cost time.
    if word.is_empty() || word.len() > 100 {
        return None;
    }
    let allowed = match word.chars().count() {
        // To one letter every other is near.
        1 => 0,
        letters => (letters / 3).clamp(1, 3),
    };
    known
        .into_iter()
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|&(far, candidate)| far <= allowed && candidate != word)
        .min()
        .map(|(_, candidate)| candidate.to_owned())
}

/// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (fold(a), fold(b));
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

/// `-`, `_` and case are the commonest slips and should cost nothing.
fn fold(word: &str) -> Vec<char> {
    word.chars().map(|c| if c == '-' { '_' } else { c.to_ascii_lowercase() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_slips_and_leaves_other_words_alone() {
        let known = ["concurrency", "timeout", "after", "when", "with_items"];
        let nearest = |word| nearest(word, known);
        assert_eq!(nearest("concurency").as_deref(), Some("concurrency"));
        assert_eq!(nearest("timeuot").as_deref(), Some("timeout"));
        assert_eq!(nearest("With-Items").as_deref(), Some("with_items"));
        assert_eq!(nearest("wehn").as_deref(), Some("when"));
        assert_eq!(nearest("database"), None);
        assert_eq!(nearest(""), None);
        assert_eq!(super::nearest("b", ["a", "c"]), None);
        assert_eq!(super::nearest("B", ["a", "b"]).as_deref(), Some("b"));
        assert_eq!(super::nearest("bd", ["db", "gpu"]).as_deref(), Some("db"));
    }
}
