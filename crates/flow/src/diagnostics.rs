//! Everything that is wrong with a set of files, and how it is drawn.

use crate::problem::Problem;
use crate::source::{Source, Span};
use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use std::fmt;

/// More than this many are not kept: nobody reads them, and a file could hold thousands.
const KEPT: usize = 100;

/// One thing that is wrong, and where.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    pub problem: Problem,
    pub span: Span,
    /// Which of the given files, by its place in the list.
    pub file: usize,
    pub line: u32,
    pub column: u32,
}

/// All errors of the files that were given, by file and place.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics {
    sources: Vec<Source>,
    list: Vec<Diagnostic>,
    /// There were more than were kept.
    more: bool,
}

impl Diagnostics {
    pub(crate) fn add_source(&mut self, source: Source) {
        self.sources.push(source);
    }

    pub(crate) fn source(&self, file: usize) -> &Source {
        &self.sources[file]
    }

    /// The pack that a file is part of.
    pub(crate) fn pack_of(&self, file: &str) -> Option<&str> {
        self.sources.iter().find(|source| source.name == file)?.pack.as_deref()
    }

    /// Only what is wanted of it.
    pub fn only(mut self, wanted: impl Fn(&Diagnostic) -> bool) -> Diagnostics {
        self.list.retain(wanted);
        self
    }

    /// Hides a piece of a file wherever that is drawn. Places stay what they are.
    pub(crate) fn conceal(&mut self, file: usize, span: Span) {
        self.sources[file].conceal(span);
    }

    pub(crate) fn report(&mut self, file: usize, span: Span, problem: Problem) {
        let span = self.sources[file].underline(span);
        // What stands behind an alias is read once for every use, and is wrong only once.
        let known = |old: &Diagnostic| old.file == file && old.span == span && old.problem == problem;
        if self.list.iter().any(known) {
            return;
        }
        if self.list.len() == KEPT {
            self.more = true;
            return;
        }
        let (line, column) = self.sources[file].place(span.start);
        self.list.push(Diagnostic { problem, span, file, line, column });
    }

    /// Nothing further will be kept, so that looking closer is not worth the time.
    pub(crate) fn is_full(&self) -> bool {
        self.list.len() == KEPT
    }

    pub(crate) fn sort(&mut self) {
        self.list.sort_by_key(|diagnostic| (diagnostic.file, diagnostic.span));
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// At most a hundred; what comes after them is not kept.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.list.iter()
    }

    /// The name of the file a diagnostic is about.
    pub fn file_name(&self, diagnostic: &Diagnostic) -> &str {
        &self.sources[diagnostic.file].name
    }

    /// For people: each error with its place, the source line, a caret under it, and help.
    pub fn render(&self, color: bool) -> String {
        let renderer = if color { Renderer::styled() } else { Renderer::plain() };
        let renderer = renderer.decor_style(DecorStyle::Ascii).term_width(110);
        let mut text = String::new();
        for diagnostic in &self.list {
            text.push_str(&renderer.render(&[self.group(diagnostic)]));
            text.push_str("\n\n");
        }
        text.push_str(&self.summary());
        text.push('\n');
        text
    }

    fn group<'a>(&'a self, diagnostic: &'a Diagnostic) -> Group<'a> {
        let source = &self.sources[diagnostic.file];
        let snippet = Snippet::source(source.text.as_str())
            .path(source.name.as_str())
            .annotation(AnnotationKind::Primary.span(diagnostic.span.range()));
        let group = Level::ERROR
            .primary_title(diagnostic.problem.to_string())
            .id(diagnostic.problem.code())
            .element(snippet);
        match diagnostic.problem.help() {
            Some(help) => group.element(Level::HELP.message(help)),
            None => group,
        }
    }

    fn summary(&self) -> String {
        let errors = if self.len() == 1 { "1 error".to_owned() } else { format!("{} errors", self.len()) };
        if self.more { format!("{errors}, and there are more") } else { errors }
    }
}

/// One line for each error, for logs: `file:line:column: sentence`.
impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, diagnostic) in self.list.iter().enumerate() {
            let Diagnostic { problem, line, column, .. } = diagnostic;
            let end = if index == 0 { "" } else { "\n" };
            write!(f, "{end}{}:{line}:{column}: {problem}", self.file_name(diagnostic))?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}
