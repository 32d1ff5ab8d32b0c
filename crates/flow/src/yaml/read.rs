//! From the parser's events to trees, one a document.

use super::tree::{Entry, Node, Value};
use crate::diagnostics::Diagnostics;
use crate::problem::{Problem, quoted};
use crate::source::Span;
use serde_saphyr::granit_parser::{ErrorKind, Event, Parser, ScalarStyle, ScanError, Tag};
use serde_saphyr::granit_parser::{Span as Mark, StrInput};
use std::borrow::Cow;
use std::collections::HashMap;

pub const MAX_BYTES: usize = 256 * 1024;
const MAX_DEPTH: usize = 64;
const MAX_VALUES: usize = 50_000;

/// The documents of `file`. A file that is not YAML gives none, and one error: what follows it is guesswork.
pub(crate) fn read(file: usize, diagnostics: &mut Diagnostics) -> Vec<Node> {
    let text = diagnostics.source(file).text.clone();
    let mut options = serde_saphyr::granit_parser::Options::default();
    options.set_emit_comments(false);
    let parser = Parser::new_from_str_with_options(&text, options);
    let mut reader =
        Reader { file, text: &text, parser, anchors: HashMap::new(), values: 0, depth: 0, diagnostics };
    match reader.documents() {
        Ok(documents) => documents,
        Err(Stop(span, problem)) => {
            diagnostics.report(file, span, problem);
            Vec::new()
        }
    }
}

/// Reading cannot go on.
struct Stop(Span, Problem);

struct Reader<'a> {
    file: usize,
    text: &'a str,
    parser: Parser<'a, StrInput<'a>>,
    anchors: HashMap<usize, Node>,
    values: usize,
    depth: usize,
    diagnostics: &'a mut Diagnostics,
}

impl<'a> Reader<'a> {
    fn documents(&mut self) -> Result<Vec<Node>, Stop> {
        let mut documents = Vec::new();
        while let Some((event, mark)) = self.next()? {
            match event {
                Event::StreamStart | Event::StreamEnd | Event::DocumentStart(..) | Event::DocumentEnd => {}
                event => documents.push(self.node(event, mark)?),
            }
        }
        Ok(documents)
    }

    fn next(&mut self) -> Result<Option<(Event<'a>, Mark)>, Stop> {
        match self.parser.next_event() {
            None => Ok(None),
            Some(Ok(next)) => Ok(Some(next)),
            Some(Err(error)) => Err(self.syntax(&error)),
        }
    }

    fn syntax(&self, error: &ScanError) -> Stop {
        let at = error.marker().byte_offset().unwrap_or(self.text.len());
        let span = Span::new(at, at);
        let problem = match error.kind() {
            ErrorKind::TabNotAllowed
            | ErrorKind::TabInBlockIndentation
            | ErrorKind::TabAtBlockScalarStart
            | ErrorKind::TabInIndentation
            | ErrorKind::TabInPlainScalar => {
                // The parser stops a little before or behind the tab itself.
                let line = self.text[..at.min(self.text.len())].rfind('\n').map_or(0, |end| end + 1);
                let tab = self.text[line..].find('\t').map_or(at, |offset| line + offset);
                return Stop(Span::new(tab, tab + 1), Problem::Tab);
            }
            kind => Problem::Yaml { message: quoted_long(&kind.to_string()) },
        };
        Stop(span, problem)
    }

    fn node(&mut self, event: Event<'a>, mark: Mark) -> Result<Node, Stop> {
        let span = self.span(&mark);
        self.count(1, span)?;
        self.refuse_tag(event.tag(), &mark, span);
        let anchor = event.anchor_id();
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Stop(span, Problem::TooDeep { what: "values", limit: MAX_DEPTH }));
        }
        let node = match event {
            Event::Scalar(text, style, ..) => Node { span, value: scalar(text, style) },
            Event::SequenceStart(..) => self.list(span)?,
            Event::MappingStart(..) => self.map(span)?,
            Event::Alias(id) => self.alias(id, span)?,
            _ => return Err(Stop(span, Problem::Yaml { message: "a value was expected".to_owned() })),
        };
        self.depth -= 1;
        if let Some(anchor) = anchor {
            // The copy kept for aliases counts too, or nested anchors would multiply memory.
            self.count(node.size(), span)?;
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    fn list(&mut self, start: Span) -> Result<Node, Stop> {
        let mut items = Vec::new();
        let mut end = start.end;
        while let Some((event, mark)) = self.next()? {
            if event == Event::SequenceEnd {
                end = self.span(&mark).end;
                break;
            }
            items.push(self.node(event, mark)?);
        }
        Ok(Node { span: Span::new(start.start, end), value: Value::List(items) })
    }

    fn map(&mut self, start: Span) -> Result<Node, Stop> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut first_lines: HashMap<String, u32> = HashMap::new();
        let mut end = start.end;
        let mut bare_template = false;
        while let Some((event, mark)) = self.next()? {
            if event == Event::MappingEnd {
                end = self.span(&mark).end;
                break;
            }
            let key = self.node(event, mark)?;
            let Some((event, mark)) = self.next()? else { break };
            let node = self.node(event, mark)?;
            let Value::Scalar { text, .. } = key.value else {
                bare_template |=
                    key.span.start == start.start + 1 && self.text[start.start..].starts_with("{{");
                if bare_template {
                    continue;
                }
                self.diagnostics.report(self.file, key.span, Problem::KeyNotText);
                continue;
            };
            let line = self.diagnostics.source(self.file).line(key.span.start);
            if let Some(&first_line) = first_lines.get(&text) {
                let problem = Problem::DuplicateKey { key: quoted(&text), first_line };
                self.diagnostics.report(self.file, key.span, problem);
                continue;
            }
            first_lines.insert(text.clone(), line);
            entries.push(Entry { key: text, key_span: key.span, node });
        }
        let span = Span::new(start.start, end);
        if bare_template {
            self.diagnostics.report(self.file, span, Problem::UnquotedTemplate);
            // Going on as if it had been quoted keeps one mistake from looking like two.
            let text = self.diagnostics.source(self.file).slice(span).to_owned();
            return Ok(Node { span, value: Value::Scalar { text, plain: false } });
        }
        Ok(Node { span, value: Value::Map(entries) })
    }

    /// An alias stands for a copy of what it names; the copy counts as if it had been written out.
    fn alias(&mut self, id: usize, span: Span) -> Result<Node, Stop> {
        let Some(node) = self.anchors.get(&id) else {
            let message = "an alias cannot stand inside what it names".to_owned();
            return Err(Stop(span, Problem::Yaml { message }));
        };
        let node = node.clone();
        if self.depth + node.depth() > MAX_DEPTH {
            return Err(Stop(span, Problem::TooDeep { what: "values", limit: MAX_DEPTH }));
        }
        self.count(node.size(), span)?;
        Ok(node)
    }

    fn count(&mut self, values: usize, span: Span) -> Result<(), Stop> {
        self.values += values;
        if self.values > MAX_VALUES {
            return Err(Stop(span, Problem::TooManyValues { limit: MAX_VALUES }));
        }
        Ok(())
    }

    fn refuse_tag(&mut self, tag: Option<&Tag>, mark: &Mark, span: Span) {
        if tag.is_none() {
            return;
        }
        let span = mark.tag_span().map_or(span, |tag| self.span(&tag));
        let tag = quoted(self.diagnostics.source(self.file).slice(span));
        self.diagnostics.report(self.file, span, Problem::YamlTag { tag });
    }

    fn span(&self, mark: &Mark) -> Span {
        mark.byte_range().map_or(Span::default(), |range| Span::new(range.start, range.end))
    }
}

fn scalar(text: Cow<'_, str>, style: ScalarStyle) -> Value {
    Value::Scalar { text: text.into_owned(), plain: style == ScalarStyle::Plain }
}

/// Parser messages are sentences about YAML; they are kept whole unless something is very odd.
fn quoted_long(message: &str) -> String {
    message.chars().take(200).collect()
}
