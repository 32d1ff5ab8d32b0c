//! Rust source as a flat list of tokens that know whether they are test code.
//!
//! Tokens and not text, so that comments and strings cannot be mistaken for code; tokens and not a syntax
//! tree, so that the bodies of macros are seen too. Doc comments are dropped.

use std::str::FromStr;

use proc_macro2::{Delimiter, Group, LexError, TokenStream, TokenTree};

#[derive(Debug)]
pub struct Token {
    /// A bracket, a character of punctuation, an identifier or a literal as written.
    pub text: String,
    pub line: usize,
    pub is_test: bool,
    pub is_literal: bool,
}

/// All tokens of a file. `is_test` says that the whole file is test code.
pub fn read(text: &str, is_test: bool) -> Result<Vec<Token>, LexError> {
    let mut flat = Flattener { tokens: Vec::new() };
    flat.stream(TokenStream::from_str(text)?, is_test);
    Ok(flat.tokens)
}

/// Names of the modules that a file declares for tests only and keeps in files of their own.
pub fn test_modules(tokens: &[Token]) -> Vec<String> {
    let names = tokens.windows(3).filter(|three| three[0].text == "mod" && three[2].text == ";");
    names.filter(|three| three[0].is_test).map(|three| three[1].text.clone()).collect()
}

/// Whether tokens begin with these texts.
pub fn begins(tokens: &[Token], texts: &[&str]) -> bool {
    tokens.len() >= texts.len() && tokens.iter().zip(texts).all(|(token, text)| token.text == *text)
}

/// Whether an attribute, without its brackets, marks test code.
fn marks_test(attribute: &str) -> bool {
    let attribute: String = attribute.split_whitespace().collect();
    let path = attribute.split('(').next().unwrap_or_default();
    attribute == "cfg(test)"
        || attribute.starts_with("cfg(all(test,")
        || path == "test"
        || path.ends_with("::test")
}

/// Turns nested groups into a flat list, and carries along whether we are in test code.
struct Flattener {
    tokens: Vec<Token>,
}

impl Flattener {
    fn stream(&mut self, stream: TokenStream, mut inherited: bool) {
        let mut is_test = inherited;
        for tree in stream {
            let line = tree.span().start().line;
            match tree {
                TokenTree::Ident(ident) => self.push(ident.to_string(), line, is_test, false),
                TokenTree::Literal(literal) => self.push(literal.to_string(), line, is_test, true),
                TokenTree::Punct(mark) => {
                    self.push(mark.as_char().to_string(), line, is_test, false);
                    if mark.as_char() == ';' {
                        is_test = inherited;
                    }
                }
                TokenTree::Group(group) => {
                    if group.delimiter() == Delimiter::Bracket {
                        let marked = marks_test(&group.stream().to_string());
                        // `#![cfg(test)]` is about everything that follows, `#[cfg(test)]` about one item.
                        inherited |= marked && self.ends_with(&["#", "!"]);
                        is_test |= marked && (inherited || self.ends_with(&["#"]));
                    }
                    self.group(&group, is_test);
                    if group.delimiter() == Delimiter::Brace {
                        is_test = inherited;
                    }
                }
            }
        }
    }

    fn group(&mut self, group: &Group, is_test: bool) {
        let (open, close) = match group.delimiter() {
            Delimiter::Parenthesis => ("(", ")"),
            Delimiter::Brace => ("{", "}"),
            Delimiter::Bracket => ("[", "]"),
            Delimiter::None => ("", ""),
        };
        self.push(open.to_owned(), group.span_open().start().line, is_test, false);
        let is_doc = group.stream().into_iter().next().is_some_and(|first| first.to_string() == "doc");
        if !is_doc {
            self.stream(group.stream(), is_test);
        }
        self.push(close.to_owned(), group.span_close().start().line, is_test, false);
    }

    fn push(&mut self, text: String, line: usize, is_test: bool, is_literal: bool) {
        self.tokens.push(Token { text, line, is_test, is_literal });
    }

    fn ends_with(&self, texts: &[&str]) -> bool {
        let begin = self.tokens.len().saturating_sub(texts.len());
        begins(&self.tokens[begin..], texts)
    }
}

#[test]
fn test_code_is_told_from_the_rest() {
    let source = "
        fn plain() {}
        #[cfg(test)] use inside::{one, two};
        fn again() {}
        #[tokio::test(start_paused = true)] async fn tested() { deep }
        #[cfg(not(test))] fn outside() {}
        #[cfg(test)] mod tests { fn nested() {} }
        fn last() { /* \" */ }
    ";
    let tokens = read(source, false).expect("it is Rust");
    let tested = |name: &str| tokens.iter().find(|token| token.text == name).map(|token| token.is_test);
    for name in ["plain", "again", "outside", "last"] {
        assert_eq!(tested(name), Some(false), "{name}");
    }
    for name in ["two", "tested", "deep", "nested"] {
        assert_eq!(tested(name), Some(true), "{name}");
    }
    assert!(
        read("#![cfg(test)]\nfn a() {}\nfn b() {}", false).expect("it is Rust").last().expect("a }").is_test
    );
}
