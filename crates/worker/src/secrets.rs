//! Secrets: orders only refer to them, the worker looks them up, and nothing that leaves it shows them.
//!
//! A secret that spans lines is also looked for line by line. Parts of fewer than four bytes are not looked for: they
//! would be found everywhere.

use serde_json::Value as Json;
use std::collections::BTreeSet;
use std::path::Path;
use tidegate_core::model::Text;

/// What stands in place of a secret.
const HIDDEN: &str = "***";
const SHORTEST: usize = 4;
/// No secret is longer.
const LONGEST: u64 = 64 * 1024;

/// The texts that must not be seen, the longest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Secrets {
    hidden: Vec<String>,
}

impl Secrets {
    /// The text itself, from now on hidden if it is a secret. The error is a sentence.
    pub(crate) fn reveal(&mut self, text: &Text) -> Result<String, String> {
        match text {
            Text::Plain(text) => Ok(text.clone()),
            Text::Secret { secret } => {
                let value = look_up(secret)?;
                self.hide(&value);
                Ok(value)
            }
        }
    }

    /// Not to be seen from now on.
    pub(crate) fn hide(&mut self, value: &str) {
        let escaped = serde_json::to_string(value).unwrap_or_default();
        let mut all: BTreeSet<String> = std::mem::take(&mut self.hidden).into_iter().collect();
        let parts = value.lines().chain([value, escaped.trim_matches('"')]);
        all.extend(parts.map(str::trim).filter(|part| part.len() >= SHORTEST).map(str::to_owned));
        self.hidden = all.into_iter().collect();
        self.hidden.sort_by_key(|part| std::cmp::Reverse(part.len()));
    }

    pub(crate) fn conceal(&self, text: &str) -> String {
        self.hidden.iter().fold(text.to_owned(), |text, part| match text.contains(part) {
            true => text.replace(part, HIDDEN),
            false => text,
        })
    }

    /// In names, texts and numbers, however they were written.
    pub(crate) fn conceal_json(&self, value: Json) -> Json {
        if self.hidden.is_empty() {
            return value;
        }
        match value {
            Json::String(text) => Json::String(self.conceal(&text)),
            Json::Number(number) => {
                let text = number.to_string();
                let shown = self.conceal(&text);
                if shown == text { Json::Number(number) } else { Json::String(shown) }
            }
            Json::Array(items) => items.into_iter().map(|item| self.conceal_json(item)).collect(),
            Json::Object(fields) => fields
                .into_iter()
                .map(|(name, value)| (self.conceal(&name), self.conceal_json(value)))
                .collect(),
            plain => plain,
        }
    }

    /// In what is not text.
    pub(crate) fn conceal_bytes(&self, bytes: &[u8]) -> Vec<u8> {
        let mut shown = Vec::with_capacity(bytes.len());
        let mut rest = bytes;
        while let Some(first) = rest.first() {
            match self.hidden.iter().find(|part| rest.starts_with(part.as_bytes())) {
                Some(part) => {
                    shown.extend_from_slice(HIDDEN.as_bytes());
                    rest = &rest[part.len()..];
                }
                None => {
                    shown.push(*first);
                    rest = &rest[1..];
                }
            }
        }
        shown
    }

    /// Where a text can be cut without cutting a secret that may go on after it.
    fn safe_end(&self, text: &str) -> usize {
        let Some(longest) = self.hidden.first().map(String::len) else { return text.len() };
        let mut end = text.len().saturating_sub(longest - 1);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        // One that begins before the cut and ends after it stays whole.
        let across = |part: &String| {
            let begins = text.match_indices(part.as_str()).map(|(at, _)| at);
            begins.filter(|at| (*at..at + part.len()).contains(&end)).min()
        };
        self.hidden.iter().filter_map(across).fold(end, usize::min)
    }
}

/// Hides secrets in a text that comes piece by piece.
#[derive(Debug, Default)]
pub(crate) struct Veil {
    /// What may be the beginning of a secret.
    held: String,
}

impl Veil {
    /// What can be shown of it by now.
    pub(crate) fn pass(&mut self, secrets: &Secrets, text: String, newline: bool) -> String {
        if secrets.hidden.is_empty() {
            return text;
        }
        self.held.push_str(&text);
        let end = if newline { self.held.len() } else { secrets.safe_end(&self.held) };
        let rest = self.held.split_off(end);
        secrets.conceal(&std::mem::replace(&mut self.held, rest))
    }

    /// What was held back, when nothing follows any more.
    pub(crate) fn rest(&mut self, secrets: &Secrets) -> Option<String> {
        let held = std::mem::take(&mut self.held);
        (!held.is_empty()).then(|| secrets.conceal(&held))
    }
}

fn look_up(reference: &str) -> Result<String, String> {
    let missing = |why: &str| format!("the secret `{reference}` {why} on this worker");
    match reference.split_once(':') {
        Some(("env", name)) => std::env::var(name).map_err(|_| missing("is not set")),
        Some(("file", path)) => {
            read(Path::new(path)).map_err(|error| missing(&format!("cannot be read ({error})")))
        }
        _ => Err(format!("`{reference}` is no reference to a secret")),
    }
}

/// Without the newline with which files end.
fn read(path: &Path) -> Result<String, String> {
    let size = std::fs::metadata(path).map_err(|error| error.to_string())?.len();
    if size > LONGEST {
        return Err(format!("it is longer than {LONGEST} bytes"));
    }
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    Ok(text
        .strip_suffix('\n')
        .map_or(text.as_str(), |text| text.strip_suffix('\r').unwrap_or(text))
        .to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hiding(values: &[&str]) -> Secrets {
        let mut secrets = Secrets::default();
        values.iter().for_each(|value| secrets.hide(value));
        secrets
    }

    #[test]
    fn secrets_are_hidden_whole_line_by_line_and_inside_json() {
        let secrets =
            hiding(&["top-secret", "two\nlines-of-it", "a \"quoted\" one", "top-secret-too", "abc"]);
        assert_eq!(secrets.conceal("x top-secret-too y top-secret z"), "x *** y *** z");
        assert_eq!(secrets.conceal("lines-of-it"), "***");
        assert_eq!(secrets.conceal(r#"{"k": "a \"quoted\" one"}"#), r#"{"k": "***"}"#);
        assert_eq!(secrets.conceal("two abc"), "two abc", "too short to be looked for");
    }

    #[test]
    fn secrets_are_hidden_in_values_and_in_bytes() {
        let secrets = hiding(&["top-secret", "271828"]);
        let value = serde_json::json!({ "a top-secret": ["x top-secret", 271828, -3.5, null], "b": true });
        let shown = serde_json::json!({ "a ***": ["x ***", "***", -3.5, null], "b": true });
        assert_eq!(secrets.conceal_json(value.clone()), shown);
        assert_eq!(secrets.conceal_bytes(b"\xfftop-secret\x00top"), b"\xff***\x00top");
        assert_eq!(Secrets::default().conceal_json(value.clone()), value);
    }

    #[test]
    fn files_and_variables_are_looked_up_and_what_is_missing_is_said() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "from a file\r\n").unwrap();
        let mut secrets = Secrets::default();
        let mut reveal = |secret: String| secrets.reveal(&Text::Secret { secret });
        assert_eq!(reveal(format!("file:{}", file.path().display())), Ok("from a file".to_owned()));
        assert_eq!(reveal("env:PATH".into()), Ok(std::env::var("PATH").unwrap()));
        let unset = reveal("env:NO_SUCH_VARIABLE".into()).unwrap_err();
        assert_eq!(unset, "the secret `env:NO_SUCH_VARIABLE` is not set on this worker");
        assert!(reveal("file:/no/such/file".into()).unwrap_err().contains("cannot be read"));
        assert!(reveal("vault:x".into()).is_err());
        assert_eq!(secrets.conceal("it came from a file"), "it came ***");
    }

    proptest! {
        /// However a text is cut into pieces, the same is shown as of the whole.
        #[test]
        fn pieces_hide_what_the_whole_hides(
            text in "[ab]{0,60}", secret in "[ab]{4,9}", cuts in prop::collection::vec(0usize..60, 0..6),
        ) {
            let secrets = hiding(&[&secret]);
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            cuts.sort_unstable();
            let (mut veil, mut shown, mut from) = (Veil::default(), String::new(), 0);
            for cut in cuts {
                shown += &veil.pass(&secrets, text[from..cut].to_owned(), false);
                from = cut;
            }
            shown += &veil.pass(&secrets, text[from..].to_owned(), false);
            shown += &veil.rest(&secrets).unwrap_or_default();
            prop_assert!(!shown.contains(&secret));
            prop_assert!(!text.contains(&secret) || shown.contains(HIDDEN));
            prop_assert!(text.contains(&secret) || shown == text);
        }
    }
}
