//! From trees to [`tidegate_core::model`]: every document is walked to its end, whatever is wrong on the way.

mod action;
mod calls;
mod connections;
mod context;
mod document;
mod flow;
mod graph;
mod inputs;
mod limits;
mod looping;
mod outlines;
mod packs;
mod policy;
mod pools;
mod recursion;
mod step;
mod templates;
mod work;

use crate::diagnostics::Diagnostics;
use crate::problem::Problem;
use crate::source::{Source, Span};
use crate::yaml;
use tidegate_core::ids::Name;
use tidegate_core::model::{Action, Flow, LimitsDocument, Pool};

/// What a set of files says, all documents together.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Document {
    pub flows: Vec<Flow>,
    /// Present if any document declares limits or pools.
    pub limits: Option<LimitsDocument>,
    pub actions: Vec<Action>,
    /// Everything that was read.
    pub files: Vec<Name>,
}

/// One file of a set.
#[derive(Clone, Copy, Debug)]
pub struct File<'a> {
    pub name: &'a str,
    pub bytes: &'a [u8],
    /// The pack it is part of: what it defines has names that start with that of the pack.
    pub pack: Option<&'a str>,
}

/// What there is besides the files that are read.
#[derive(Clone, Copy, Debug)]
pub enum Elsewhere<'a> {
    /// Nobody knows. A pool that no file declares is an error only if the files declare limits or pools at all.
    Unknown,
    /// These pools and no others; actions and flows may be anywhere.
    Pools(&'a [Pool]),
    /// Nothing: what no file declares does not exist, and no worker has functions.
    Nothing,
    /// Workers that may have functions for actions without work of their own; what no file declares does not exist.
    Workers,
}

impl Elsewhere<'_> {
    /// Whether flows and actions that no file declares do not exist.
    fn is_nothing_else(&self) -> bool {
        matches!(self, Elsewhere::Nothing | Elsewhere::Workers)
    }

    fn pools(&self) -> Option<&[Pool]> {
        match self {
            Elsewhere::Unknown => None,
            Elsewhere::Pools(pools) => Some(pools),
            Elsewhere::Nothing | Elsewhere::Workers => Some(&[]),
        }
    }
}

/// Reads one file. Pools are checked only if the file declares any.
pub fn parse(file_name: &str, text: impl AsRef<[u8]>) -> Result<Document, Diagnostics> {
    parse_with(&[(file_name, text.as_ref())], Elsewhere::Unknown)
}

/// Reads several files as one set, so that a flow may use what another file declares.
pub fn parse_many(files: &[(&str, &[u8])]) -> Result<Document, Diagnostics> {
    parse_with(files, Elsewhere::Unknown)
}

/// Reads several files, knowing what else there is.
pub fn parse_with(files: &[(&str, &[u8])], elsewhere: Elsewhere<'_>) -> Result<Document, Diagnostics> {
    let file = |&(name, bytes)| File { name, bytes, pack: None };
    parse_files(&files.iter().map(file).collect::<Vec<_>>(), elsewhere)
}

/// Reads several files, some of which may be parts of packs.
pub fn parse_files(files: &[File<'_>], elsewhere: Elsewhere<'_>) -> Result<Document, Diagnostics> {
    let mut diagnostics = Diagnostics::default();
    let mut documents = Vec::new();
    for (file, File { name, bytes, pack }) in files.iter().enumerate() {
        let (text, problem) = text_of(bytes);
        diagnostics.add_source(Source::new(name, text, *pack));
        match problem {
            Some((span, problem)) => diagnostics.report(file, span, problem),
            None => {
                documents.extend(yaml::read(file, &mut diagnostics).into_iter().map(|node| (file, node)));
                nothing(file, &documents, &mut diagnostics);
            }
        }
    }
    packs::check_names(files, &mut diagnostics);
    let document = document::compile(&documents, elsewhere, &mut diagnostics);
    if diagnostics.is_empty() {
        let files = files.iter().map(|file| Name::new(file.name)).collect();
        return Ok(Document { files, ..document });
    }
    diagnostics.sort();
    Err(diagnostics)
}

/// A file that says nothing was probably not the one that was meant.
fn nothing(file: usize, documents: &[(usize, yaml::Node)], diagnostics: &mut Diagnostics) {
    let said = documents.iter().any(|(of, node)| *of == file && !node.is_null());
    if !said && !diagnostics.iter().any(|diagnostic| diagnostic.file == file) {
        diagnostics.report(file, Span::default(), Problem::EmptyFile);
    }
}

/// The text as far as it can be shown, and why it cannot be read.
fn text_of(bytes: &[u8]) -> (String, Option<(Span, Problem)>) {
    if bytes.len() > yaml::MAX_BYTES {
        let problem = Problem::FileTooLarge { size: bytes.len(), limit: yaml::MAX_BYTES };
        return (String::new(), Some((Span::default(), problem)));
    }
    // A byte order mark says nothing in UTF-8, and some editors write one.
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    match std::str::from_utf8(bytes) {
        Ok(text) => (text.to_owned(), None),
        Err(error) => {
            let at = error.valid_up_to();
            let text = String::from_utf8_lossy(bytes).into_owned();
            (text, Some((Span::new(at, at + 3), Problem::NotUtf8)))
        }
    }
}
