//! What can be said about a template before it is ever rendered: its syntax, and the names it uses.

use super::engine::environment;
use super::{KEYWORDS, Outline, Reference, Scan, is_template, scan, single_expression};
use crate::problem::{Problem, list, quoted};
use minijinja::ErrorKind;
use std::collections::{BTreeMap, HashMap};
use tidegate_core::suggest::nearest;

/// `{% for %}` deeper than this could multiply what it is given beyond all bounds.
const MAX_FOR: usize = 4;
/// Problems reported about one template.
const MAX_FOUND: usize = 20;
/// Words and signs in one expression.
const MAX_TOKENS: usize = 1_000;
const STATEMENTS: [&str; 8] = ["if", "elif", "else", "endif", "for", "endfor", "raw", "endraw"];
const FUNCTIONS: [&str; 2] = ["range", "dict"];
/// What is known of a step that has ended.
const PARTS: [&str; 3] = ["output", "state", "error"];
/// What is known of a member of a chain that has ended. One that failed has ended the chain, so nobody sees its error.
const MEMBER_PARTS: [&str; 2] = ["output", "state"];
const VARIABLES: [&str; 6] = ["inputs", "steps", "item", "index", "run", "repeat"];

/// The names a template may use, given where it stands.
#[derive(Clone, Copy, Default)]
pub(crate) struct Names<'a> {
    pub inputs: &'a [String],
    /// All steps of the flow and their indexes; `None` where no step has run yet.
    pub steps: Option<&'a HashMap<String, usize>>,
    /// What each of them puts out.
    pub outputs: &'a [Outline],
    /// The step the template belongs to, and for each step whether it has ended before this one starts.
    pub step: Option<(&'a str, &'a [bool])>,
    /// Whether there is an `item`.
    pub in_loop: bool,
    /// Whether there will be one, but not yet.
    pub before_loop: bool,
    pub run: bool,
    /// The members of the chains around it, and what each puts out that has ended before this is rendered.
    pub members: Option<&'a BTreeMap<String, Option<Outline>>>,
    /// Members of chains that have ended, and how they are found in what these put out.
    pub inside: Option<&'a BTreeMap<String, String>>,
    /// Whether there is a `repeat`.
    pub repeats: bool,
}

/// A problem and the bytes of the template it is about.
pub(crate) type Found = (Problem, usize, usize);

/// What is wrong with `text`, up to a number that anybody would read.
pub(crate) fn check(text: &str, names: Names<'_>) -> Vec<Found> {
    if !is_template(text) {
        return Vec::new();
    }
    let scan = scan(text);
    // minijinja reads some expressions by recursion without a limit: `not not not …` would end the process.
    if scan.longest > MAX_TOKENS {
        return vec![(Problem::TemplateTooLong { limit: MAX_TOKENS }, 0, 0)];
    }
    if let Some(found) = syntax(text) {
        return vec![found];
    }
    let mut found = Vec::new();
    statements(&scan, &mut found);
    filters_and_tests(&scan, &mut found);
    for reference in &scan.references {
        if found.len() >= MAX_FOUND {
            break;
        }
        if let Some(problem) = name(reference, &scan, names) {
            found.push((problem, reference.start, reference.end));
        }
    }
    found
}

fn syntax(text: &str) -> Option<Found> {
    let (error, offset) = match single_expression(text) {
        Some((expression, offset)) => (environment().compile_expression(expression).err()?, offset),
        None => (environment().template_from_str(text).err()?, 0),
    };
    let range = error.range().unwrap_or(0..0);
    let problem = Problem::TemplateSyntax { message: super::engine::sentence(&error) };
    Some((problem, offset + range.start, offset + range.end))
}

fn statements(scan: &Scan, found: &mut Vec<Found>) {
    let unknown = scan.statements.iter().filter(|(word, _)| !STATEMENTS.contains(&word.as_str()));
    let too_deep =
        scan.statements.iter().find(|(word, _)| word == "for").filter(|_| scan.for_depth > MAX_FOR);
    for (word, start) in unknown.chain(too_deep).take(MAX_FOUND) {
        let problem = Problem::TemplateStatement { statement: quoted(word) };
        found.push((problem, *start, start + word.len()));
    }
}

/// minijinja finds a missing filter only when it gets there; here every one is tried once.
fn filters_and_tests(scan: &Scan, found: &mut Vec<Found>) {
    let fails = |source: String, kind: ErrorKind| {
        let expression = environment().compile_expression_owned(source);
        match expression.and_then(|expression| expression.eval(())) {
            Ok(_) => false,
            Err(error) => error.kind() == kind,
        }
    };
    let mut filters: Vec<&(String, usize)> = scan.filters.iter().collect();
    let mut tests: Vec<&(String, usize)> = scan.tests.iter().collect();
    for names in [&mut filters, &mut tests] {
        names.sort();
        names.dedup_by(|later, first| later.0 == first.0);
    }
    for (name, start) in filters {
        if fails(format!("''|{name}"), ErrorKind::UnknownFilter) {
            found.push((Problem::UnknownFilter { name: quoted(name) }, *start, start + name.len()));
        }
    }
    for (name, start) in tests {
        if fails(format!("'' is {name}"), ErrorKind::UnknownTest) {
            found.push((Problem::UnknownTest { name: quoted(name) }, *start, start + name.len()));
        }
    }
}

fn name(reference: &Reference, scan: &Scan, names: Names<'_>) -> Option<Problem> {
    let first = reference.path.first().map(String::as_str);
    match reference.root.as_str() {
        "inputs" => match first {
            None => None,
            Some(input) if names.inputs.iter().any(|known| known == input) => None,
            Some(input) => Some(Problem::UnknownInput {
                input: quoted(input),
                meant: nearest(input, names.inputs.iter().map(String::as_str)),
            }),
        },
        "steps" => step(&reference.path, names),
        local if scan.locals.contains(local) => None,
        "run" if names.run => match first {
            Some("id") => None,
            Some(_) => Some(Problem::UnknownVariable {
                name: format!("run.{}", quoted(first.unwrap_or_default())),
                meant: Some("run.id".to_owned()),
            }),
            None => Some(Problem::NotNamed { root: "run" }),
        },
        "item" | "index" if names.in_loop => None,
        "item" | "index" => {
            let help = match names.before_loop {
                true => "`when` and `with_items` are evaluated once, before the first item",
                false => "add `with_items` to the step",
            };
            Some(Problem::OnlyInLoops { name: reference.root.clone(), help })
        }
        "repeat" if names.repeats => match first {
            Some("index") => None,
            Some(other) => Some(Problem::UnknownVariable {
                name: format!("repeat.{}", quoted(other)),
                meant: Some("repeat.index".to_owned()),
            }),
            None => Some(Problem::NotNamed { root: "repeat" }),
        },
        "repeat" => {
            let help = "add `repeat: { while: … }` around it";
            Some(Problem::OnlyInLoops { name: reference.root.clone(), help })
        }
        member if names.members.is_some_and(|members| members.contains_key(member)) => {
            self::member(member, &reference.path, names)
        }
        function if FUNCTIONS.contains(&function) => None,
        other => Some(Problem::UnknownVariable { name: quoted(other), meant: meant(other, names) }),
    }
}

/// `fetch.output` most likely means `steps.fetch.output`.
fn meant(name: &str, names: Names<'_>) -> Option<String> {
    if names.steps.is_some_and(|steps| steps.contains_key(name)) {
        return Some(format!("steps.{name}"));
    }
    if names.inputs.iter().any(|input| input == name) {
        return Some(format!("inputs.{name}"));
    }
    if let Some(path) = names.inside.and_then(|inside| inside.get(name)) {
        return Some(path.clone());
    }
    let members = names.members.into_iter().flatten().filter(|(_, ended)| ended.is_some());
    nearest(name, VARIABLES.into_iter().chain(members.map(|(member, _)| member.as_str())))
}

fn member(member: &str, path: &[String], names: Names<'_>) -> Option<Problem> {
    let Some(output) = names.members.and_then(|members| members.get(member))? else {
        return Some(Problem::NotYet { member: member.to_owned() });
    };
    match path {
        [part, ..] if !MEMBER_PARTS.contains(&part.as_str()) => {
            let meant = nearest(part, MEMBER_PARTS).map(|meant| format!("{member}.{meant}"));
            Some(Problem::UnknownVariable { name: format!("{member}.{}", quoted(part)), meant })
        }
        [part, rest @ ..] if part == "output" => inside(member, output, rest),
        _ => None,
    }
}

/// What is looked for in an output must be something that there can be.
fn inside(whose: &str, output: &Outline, path: &[String]) -> Option<Problem> {
    let (at, known) = output.stray(path)?;
    let before = path[..at].iter().map(|name| format!(".{name}"));
    Some(Problem::NoSuchOutput {
        of: format!("{whose}.output{}", before.collect::<String>()),
        name: quoted(&path[at]),
        meant: nearest(&path[at], known.iter().copied()),
        known: if known.is_empty() { String::new() } else { list(&known) },
    })
}

/// Whether a word means something in every template, so that nothing else can be called by it.
pub(crate) fn is_reserved(word: &str) -> bool {
    [&VARIABLES[..], &FUNCTIONS, &KEYWORDS, &["loop"]].iter().any(|words| words.contains(&word))
}

fn step(path: &[String], names: Names<'_>) -> Option<Problem> {
    let Some(steps) = names.steps else { return Some(Problem::TooEarly) };
    // Which step is meant must be known without rendering: its output is loaded before.
    let Some(other) = path.first() else { return Some(Problem::NotNamed { root: "steps" }) };
    let Some(&index) = steps.get(other) else {
        let meant = nearest(other, steps.keys().map(String::as_str));
        return Some(Problem::UnknownStep { step: quoted(other), meant });
    };
    if let Some(part) = path.get(1).filter(|part| !PARTS.contains(&part.as_str())) {
        let meant = nearest(part, PARTS).map(|meant| format!("steps.{other}.{meant}"));
        return Some(Problem::UnknownVariable { name: format!("steps.{other}.{}", quoted(part)), meant });
    }
    if let Some((step, ended)) = names.step {
        if step == other {
            return Some(Problem::OwnResult { step: step.to_owned() });
        }
        if !ended[index] {
            return Some(Problem::NotAfter { step: step.to_owned(), other: other.to_owned() });
        }
    }
    let output = names.outputs.get(index).filter(|_| path.get(1).is_some_and(|part| part == "output"))?;
    inside(&format!("steps.{other}"), output, &path[2..])
}
