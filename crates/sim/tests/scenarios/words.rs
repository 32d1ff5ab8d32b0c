//! A command's words: names, `key=value` pairs, quoted text, JSON.

use tidegate_core::time::Span;
use tidegate_flow::parse_duration;

/// The words of one command, taken from the front.
pub struct Words(std::collections::VecDeque<String>);

impl Words {
    /// Splits at spaces, but not within quotes, braces or brackets.
    pub fn of(text: &str) -> Words {
        let (mut words, mut word, mut depth, mut quoted) = (Vec::new(), String::new(), 0usize, false);
        for letter in text.chars() {
            match letter {
                '"' => quoted = !quoted,
                '{' | '[' if !quoted => depth += 1,
                '}' | ']' if !quoted => depth = depth.saturating_sub(1),
                _ => {}
            }
            if letter.is_whitespace() && depth == 0 && !quoted {
                words.push(std::mem::take(&mut word));
            } else {
                word.push(letter);
            }
        }
        words.push(word);
        Words(words.into_iter().filter(|word| !word.is_empty()).collect())
    }

    pub fn next(&mut self) -> Option<String> {
        self.0.pop_front()
    }

    pub fn need(&mut self, what: &str) -> Result<String, String> {
        self.next().ok_or_else(|| format!("{what} is missing"))
    }

    pub fn number<N: std::str::FromStr>(&mut self, what: &str) -> Result<N, String> {
        let word = self.need(what)?;
        word.parse().map_err(|_| format!("`{word}` is no {what}"))
    }

    pub fn span(&mut self) -> Result<Span, String> {
        let word = self.need("a duration")?;
        parse_duration(&word).ok_or_else(|| format!("`{word}` is no duration"))
    }

    /// Takes `name=value` out, wherever it stands.
    pub fn take(&mut self, name: &str) -> Option<String> {
        let value = |word: &String| Some(word.strip_prefix(name)?.strip_prefix('=')?.to_owned());
        let at = self.0.iter().position(|word| value(word).is_some())?;
        value(&self.0.remove(at)?)
    }

    /// Takes a word out if it comes next.
    pub fn is_next(&mut self, word: &str) -> bool {
        let is_next = self.0.front().is_some_and(|next| next == word);
        if is_next {
            self.0.pop_front();
        }
        is_next
    }

    /// What is left, as `name=value` pairs.
    pub fn pairs(self) -> Result<Vec<(String, String)>, String> {
        let pair = |word: String| match word.split_once('=') {
            Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
            None => Err(format!("`{word}` is not understood")),
        };
        self.0.into_iter().map(pair).collect()
    }

    pub fn rest(self) -> Vec<String> {
        self.0.into()
    }

    pub fn end(self) -> Result<(), String> {
        match self.0.front() {
            Some(word) => Err(format!("`{word}` is not understood")),
            None => Ok(()),
        }
    }
}

/// Text without the quotes around it.
pub fn unquoted(text: &str) -> String {
    text.trim_matches('"').to_owned()
}
