//! Reads the expressions of a template just far enough to know which names it uses, and where.
//!
//! minijinja can list undeclared variables too, but without their places, and not those in `steps['x']` or
//! under a slice. This reader does not check syntax: minijinja does that.

use std::collections::BTreeSet;

/// A variable and the names behind it that are written out: `steps.fetch.output`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Reference {
    pub root: String,
    pub path: Vec<String>,
    /// Bytes in the template, root and path.
    pub start: usize,
    pub end: usize,
    /// The path goes on with something that only evaluation knows: `steps[item]`.
    pub open: bool,
}

/// What a template mentions.
#[derive(Default, Debug)]
pub(crate) struct Scan {
    pub references: Vec<Reference>,
    /// Names after `|`, with their place.
    pub filters: Vec<(String, usize)>,
    /// Names after `is` or `is not`, with their place.
    pub tests: Vec<(String, usize)>,
    /// First words of `{% … %}`, with their place.
    pub statements: Vec<(String, usize)>,
    /// Names that `{% for %}` brings into being.
    pub locals: BTreeSet<String>,
    /// Tokens of the longest expression.
    pub longest: usize,
    /// How deep `{% for %}` is nested.
    pub for_depth: usize,
}

#[derive(Clone, PartialEq, Debug)]
enum Token<'a> {
    Word(&'a str),
    Text(&'a str),
    Sign(u8),
}

/// Tokens of one `{{ … }}` or `{% … %}`, each with its place.
type Tokens<'a> = Vec<(Token<'a>, usize)>;

/// Words of expressions that cannot be names.
pub(crate) const KEYWORDS: [&str; 17] = [
    "and",
    "or",
    "not",
    "in",
    "is",
    "if",
    "else",
    "true",
    "false",
    "none",
    "True",
    "False",
    "None",
    "for",
    "elif",
    "recursive",
    "endfor",
];

/// The inside of a text that is exactly one `{{ expression }}`, spaces around it aside, and its place.
pub(crate) fn single_expression(text: &str) -> Option<(&str, usize)> {
    let start = text.len() - text.trim_start().len();
    let trimmed = text.trim();
    let inner = trimmed.strip_prefix("{{").filter(|inner| !inner.starts_with('#'))?;
    let (_, end) = tokens(text, start + 2, "}}");
    if end != start + trimmed.len() {
        return None;
    }
    let inner = inner.strip_suffix("}}")?;
    let minus = inner.starts_with(['-', '+']) as usize;
    let inner = &inner[minus..];
    // A sign before the end mark belongs to the mark: `{{- x -}}`.
    Some((inner.strip_suffix(['-', '+']).unwrap_or(inner), start + 2 + minus))
}

pub(crate) fn scan(text: &str) -> Scan {
    let mut scan = Scan::default();
    let mut depth = 0usize;
    let mut at = 0;
    while let Some(offset) = text[at..].find('{') {
        at += offset;
        match text.as_bytes().get(at + 1) {
            Some(b'{') if text[at..].starts_with("{{#") => {
                at = text[at..].find("#}}").map_or(text.len(), |end| at + end + 3);
            }
            Some(b'{') => {
                let (tokens, end) = tokens(text, at + 2, "}}");
                scan.longest = scan.longest.max(tokens.len());
                expression(text, &tokens, &mut scan);
                at = end;
            }
            Some(b'%') => {
                let (tokens, end) = tokens(text, at + 2, "%}");
                scan.longest = scan.longest.max(tokens.len());
                at = statement(text, &tokens, end, &mut scan, &mut depth);
            }
            _ => at += 1,
        }
    }
    scan
}

fn statement(text: &str, tokens: &Tokens<'_>, end: usize, scan: &mut Scan, depth: &mut usize) -> usize {
    let first = tokens.iter().position(|(token, _)| matches!(token, Token::Word(_)));
    let Some((Token::Word(word), start)) = first.map(|first| &tokens[first]) else { return end };
    scan.statements.push(((*word).to_owned(), *start));
    let rest = &tokens[first.map_or(0, |first| first + 1)..];
    match *word {
        // What stands in a raw block is not read at all.
        "raw" => {
            return text[end..].find("endraw").map_or(text.len(), |raw| {
                let raw = end + raw;
                text[raw..].find("%}").map_or(text.len(), |close| raw + close + 2)
            });
        }
        "for" => {
            *depth += 1;
            scan.for_depth = scan.for_depth.max(*depth);
            scan.locals.insert("loop".to_owned());
            let until = rest.iter().position(|(token, _)| *token == Token::Word("in")).unwrap_or(rest.len());
            let targets = rest[..until].iter().filter_map(|(token, _)| match token {
                Token::Word(name) => Some((*name).to_owned()),
                _ => None,
            });
            scan.locals.extend(targets);
            expression(text, &rest[until..], scan);
        }
        "endfor" => *depth = depth.saturating_sub(1),
        _ => expression(text, rest, scan),
    }
    end
}

fn expression(text: &str, tokens: &[(Token<'_>, usize)], scan: &mut Scan) {
    let sign =
        |at: usize, sign: u8| matches!(tokens.get(at), Some((Token::Sign(found), _)) if *found == sign);
    let mut at = 0;
    while at < tokens.len() {
        let (Token::Word(word), start) = tokens[at] else {
            at += 1;
            continue;
        };
        let before = at.checked_sub(1).map(|before| &tokens[before].0);
        let after_is = match before {
            Some(Token::Word("is")) => true,
            Some(Token::Word("not")) => at >= 2 && tokens[at - 2].0 == Token::Word("is"),
            _ => false,
        };
        match before {
            Some(Token::Sign(b'.')) => {}
            Some(Token::Sign(b'|')) => scan.filters.push((word.to_owned(), start)),
            _ if after_is && word != "not" => scan.tests.push((word.to_owned(), start)),
            _ if KEYWORDS.contains(&word) => {}
            // A keyword argument: `round(precision=2)`.
            _ if sign(at + 1, b'=') && !sign(at + 2, b'=') => {}
            _ => {
                at = reference(text, tokens, at, scan);
                continue;
            }
        }
        at += 1;
    }
}

fn reference(text: &str, tokens: &[(Token<'_>, usize)], at: usize, scan: &mut Scan) -> usize {
    let (Token::Word(root), start) = tokens[at] else { return at + 1 };
    let mut reference =
        Reference { root: root.to_owned(), path: Vec::new(), start, end: start + root.len(), open: false };
    let mut next = at + 1;
    loop {
        match tokens.get(next..).unwrap_or_default() {
            [(Token::Sign(b'.'), _), (Token::Word(name), place), ..] => {
                reference.path.push((*name).to_owned());
                reference.end = place + name.len();
                next += 2;
            }
            [(Token::Sign(b'['), _), (Token::Text(name), _), (Token::Sign(b']'), close), ..] => {
                reference.path.push((*name).to_owned());
                reference.end = close + 1;
                next += 3;
            }
            [(Token::Sign(b'['), _), ..] => {
                reference.open = true;
                break;
            }
            _ => break,
        }
    }
    debug_assert!(text.is_char_boundary(reference.end));
    scan.references.push(reference);
    next
}

/// Tokens up to `close` and the place behind it; to the end of the text if it is missing.
fn tokens<'a>(text: &'a str, from: usize, close: &str) -> (Tokens<'a>, usize) {
    let bytes = text.as_bytes();
    let mut tokens = Vec::new();
    let mut at = from;
    // `}}` may end an object inside the expression: `{{ {'a': {}} }}`.
    let mut braces = 0usize;
    while at < bytes.len() {
        let rest = &text[at..];
        if braces == 0 && rest.starts_with(close) {
            return (tokens, at + close.len());
        }
        let byte = bytes[at];
        if byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80 {
            let word = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_' || *b >= 0x80;
            let length = bytes[at..].iter().take_while(|b| word(b)).count();
            tokens.push((Token::Word(&text[at..at + length]), at));
            at += length;
        } else if byte == b'"' || byte == b'\'' {
            let length = quoted_length(&bytes[at..]);
            let inner = text.get(at + 1..(at + length).saturating_sub(1)).unwrap_or_default();
            tokens.push((Token::Text(inner), at));
            at += length;
        } else if byte.is_ascii_digit() {
            // `1.5` and `items[0].id` differ: a digit takes a point only before another digit.
            let mut length = 1;
            while let Some(next) = bytes.get(at + length) {
                let point = *next == b'.' && bytes.get(at + length + 1).is_some_and(u8::is_ascii_digit);
                if !next.is_ascii_alphanumeric() && !point {
                    break;
                }
                length += 1;
            }
            tokens.push((Token::Sign(b'0'), at));
            at += length;
        } else {
            match byte {
                b'{' => braces += 1,
                b'}' => braces = braces.saturating_sub(1),
                _ => {}
            }
            if !byte.is_ascii_whitespace() {
                tokens.push((Token::Sign(byte), at));
            }
            at += 1;
        }
    }
    (tokens, bytes.len())
}

fn quoted_length(bytes: &[u8]) -> usize {
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            byte if byte == bytes[0] => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        scan(text)
            .references
            .iter()
            .map(|found| {
                let open = if found.open { "[?]" } else { "" };
                format!("{}{open}", [vec![found.root.clone()], found.path.clone()].concat().join("."))
            })
            .collect()
    }

    #[test]
    fn finds_names_wherever_they_stand() {
        let cases: [(&str, &[&str]); 14] = [
            ("plain { text }", &[]),
            ("{{ inputs.a }} and {{ steps.b.output.rows }}", &["inputs.a", "steps.b.output.rows"]),
            ("{{ steps['b'].output[0].id }}", &["steps.b.output[?]"]),
            ("{{ steps.b.output[1:inputs.n] }}", &["steps.b.output[?]", "inputs.n"]),
            ("{{ steps[item].state }}", &["steps[?]", "item"]),
            ("{{ 'inputs.a' ~ \"it's {{ b }}\" ~ c }}", &["c"]),
            ("{{ x|default(inputs.y)|round(precision=2) }}", &["x", "inputs.y"]),
            ("{{ a == b and not c is defined }}", &["a", "b", "c"]),
            ("{{ {'k': {'n': v}} }}", &["v"]),
            ("{% for row in inputs.rows %}{{ row.id }}{% endfor %}", &["inputs.rows", "row.id"]),
            ("{{# {{ hidden }} #}}{{ shown }}", &["shown"]),
            ("{% raw %}{{ hidden }}{% endraw %}{{ shown }}", &["shown"]),
            ("{{ 1.5 + n }}", &["n"]),
            ("{{ unfinished", &["unfinished"]),
        ];
        for (text, expected) in cases {
            assert_eq!(names(text), expected, "{text}");
        }
    }

    #[test]
    fn knows_filters_tests_statements_and_locals() {
        let found = scan("{% for a, b in x|items %}{{ a is not even }}{{ b|upper }}{% endfor %}");
        let words = |list: &[(String, usize)]| list.iter().map(|(word, _)| word.clone()).collect::<Vec<_>>();
        assert_eq!(words(&found.filters), ["items", "upper"]);
        assert_eq!(words(&found.tests), ["even"]);
        assert_eq!(words(&found.statements), ["for", "endfor"]);
        assert!(["a", "b", "loop"].iter().all(|name| found.locals.contains(*name)));
        assert_eq!(found.for_depth, 1);
    }

    #[test]
    fn one_expression_is_told_from_text_around_it() {
        let inner = |text| single_expression(text).map(|(inner, _)| inner.trim());
        assert_eq!(inner("{{ a }}"), Some("a"));
        assert_eq!(inner("  {{- a -}}\n"), Some("a"));
        assert_eq!(inner("{{ {'a': {}} }}"), Some("{'a': {}}"));
        assert_eq!(inner("{{ '}}' }}"), Some("'}}'"));
        assert_eq!(inner("{{ a }}{{ b }}"), None);
        assert_eq!(inner("{{ a }} b"), None);
        assert_eq!(inner("{{ a"), None);
        assert_eq!(inner("{{# a #}}"), None);
        assert_eq!(inner("a"), None);
        assert_eq!(inner(""), None);
    }
}
