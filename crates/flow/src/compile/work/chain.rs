//! Chains: `do`, a list of members, and `repeat`, which turns anything that a worker does by itself into one.

use super::{process, single};
use crate::chain::{LONGEST_PAUSE, Member, MemberWork, Repeat};
use crate::compile::connections::Connections;
use crate::compile::context::{Context, Fields};
use crate::compile::outlines::by_itself;
use crate::compile::step;
use crate::compile::templates::template_of;
use crate::grammar;
use crate::problem::{Problem, quoted};
use crate::source::Span;
use crate::template::{Names, Outline, is_reserved, is_template};
use crate::yaml::{Entry, Node, Value};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use tidegate_core::ids::Name;
use tidegate_core::model::{Retry, Template};

pub(in crate::compile) const WORK: &str = "do";

/// Chains inside chains. Nobody writes as many; a worker must be able to read what it is given.
const MAX_DEPTH: usize = 8;
const RESERVED_RULE: &str = "this word means something in templates already";

/// The order as a template: `{"do": {…}}`, a [`Member`] that stands for the whole of `owner`.
pub(in crate::compile) fn compile(
    cx: &mut Context<'_>,
    owner: (&str, Span),
    work: &Entry,
    fields: &Fields<'_>,
    connections: &Connections,
    names: Names<'_>,
) -> Template {
    let mut walk = Walk {
        connections,
        outer: names,
        members: BTreeMap::new(),
        inside: BTreeMap::new(),
        depth: 0,
        repeats: 0,
    };
    // What is repeated by itself is seen by its name.
    if work.key != WORK {
        if is_reserved(owner.0) {
            let rule = RESERVED_RULE;
            cx.report(owner.1, Problem::BadName { name: quoted(owner.0), what: "what is repeated", rule });
        }
        walk.members.insert(owner.0.to_owned(), None);
    }
    let root = walk.body(cx, owner.0, work, fields).map(|(work, repeat)| Member {
        name: Name::new(owner.0),
        when: None,
        work,
        repeat,
        timeout: None,
        retry: None,
    });
    template_of(&json!({ WORK: root }))
}

/// Whether anything in a chain is a process.
pub(in crate::compile) fn has_process(chain: &Node) -> bool {
    let Value::List(members) = &chain.value else { return false };
    members.iter().flat_map(Node::entries).any(|entry| match entry.key.as_str() {
        WORK => has_process(&entry.node),
        key => process::WORKS.contains(&key),
    })
}

/// Where in a chain we are, and what can be seen from there.
struct Walk<'a> {
    connections: &'a Connections,
    outer: Names<'a>,
    /// Of all chains around, and what each puts out that has ended.
    members: BTreeMap<String, Option<Outline>>,
    /// Of chains that have ended, as those after them see them.
    inside: BTreeMap<String, String>,
    depth: usize,
    repeats: usize,
}

impl Walk<'_> {
    fn names(&self) -> Names<'_> {
        let (members, inside) = (Some(&self.members), Some(&self.inside));
        Names { members, inside, repeats: self.repeats > 0, ..self.outer }
    }

    /// What is done, and how often.
    fn body(
        &mut self,
        cx: &mut Context<'_>,
        name: &str,
        entry: &Entry,
        fields: &Fields<'_>,
    ) -> Option<(MemberWork, Option<Repeat>)> {
        let repeat = fields.get("repeat");
        self.repeats += usize::from(repeat.is_some());
        let inner = if entry.key == WORK { names_in(&entry.node) } else { Vec::new() };
        let work = match entry.key.as_str() {
            WORK => {
                // Without the article: a step, an action, a member.
                let what = fields.place.phrase.rsplit(' ').next().unwrap_or(fields.place.phrase);
                self.chain(cx, (what, name), entry, &inner).map(MemberWork::Do)
            }
            "wait" => self.wait(cx, entry),
            _ => {
                let template = single(cx, entry, fields, self.connections, self.names());
                serde_json::from_str(&template.0).ok()
            }
        };
        if entry.key != WORK {
            self.members.insert(name.to_owned(), Some(by_itself(std::slice::from_ref(entry))));
        }
        // It is asked when the round is over, so it sees all of it.
        let repeat = repeat.map(|entry| self.repeat(cx, entry));
        self.repeats -= usize::from(repeat.is_some());
        for (member, _) in inner {
            self.members.remove(member);
            self.inside.insert(member.to_owned(), format!("{name}.output.{member}"));
        }
        match repeat {
            Some(repeat) => Some((work?, Some(repeat?))),
            None => Some((work?, None)),
        }
    }

    /// The members of a chain, which can be seen until somebody forgets them.
    fn chain(
        &mut self,
        cx: &mut Context<'_>,
        owner: (&'static str, &str),
        entry: &Entry,
        inner: &[(&str, Span)],
    ) -> Option<Vec<Arc<Member>>> {
        let nodes = cx.list(entry, Some("write it like `- { name: page, http: { url: … } }`"))?;
        if nodes.is_empty() {
            cx.report(entry.node.span, Problem::NoWork { what: owner.0, name: quoted(owner.1) });
        }
        if self.depth == MAX_DEPTH {
            cx.report(entry.key_span, Problem::TooDeep { what: "chains", limit: MAX_DEPTH });
            return None;
        }
        let mut firsts: BTreeMap<&str, Span> = BTreeMap::new();
        for (name, span) in inner {
            let first = firsts.get(name).map(|first| format!("line {}", cx.line(*first)));
            let around = self.members.contains_key(*name).then(|| "a chain around this one".to_owned());
            if let Some(first) = first.or(around) {
                let problem = Problem::DeclaredTwice { what: "member", name: quoted(name), first };
                cx.report(*span, problem);
            }
            firsts.entry(name).or_insert(*span);
        }
        self.members.extend(firsts.into_keys().map(|name| (name.to_owned(), None)));
        self.depth += 1;
        let members: Vec<Option<Member>> = nodes.iter().map(|node| self.member(cx, node)).collect();
        self.depth -= 1;
        members.into_iter().map(|member| member.map(Arc::new)).collect()
    }

    fn member(&mut self, cx: &mut Context<'_>, node: &Node) -> Option<Member> {
        let fields = cx.fields(node, "do", &grammar::MEMBER)?;
        let head = cx.required(&fields, "name");
        let text = head.and_then(|head| cx.text(&head.node, "name"));
        let name = head.zip(text).and_then(|(head, text)| self.name(cx, text, head.node.span));
        let when = fields.get("when").map(|entry| condition(cx, entry, "when", self.names()));
        let timeout = cx.time_of(&fields, "timeout");
        let retry = fields.get("retry").map(|entry| retry(cx, entry));
        let body = work(cx, text.unwrap_or_default(), node, &fields)
            .and_then(|entry| self.body(cx, text.unwrap_or_default(), entry, &fields));
        if let Some(text) = text {
            self.members.insert(text.to_owned(), Some(by_itself(node.entries())));
        }
        let (work, repeat) = body?;
        Some(Member {
            name: name?,
            when: match when {
                Some(when) => Some(when?),
                None => None,
            },
            work,
            repeat,
            timeout,
            retry,
        })
    }

    fn name(&self, cx: &mut Context<'_>, text: &str, span: Span) -> Option<Name> {
        if is_reserved(text) || text == crate::chain::ROUNDS {
            let rule = RESERVED_RULE;
            cx.report(span, Problem::BadName { name: quoted(text), what: "a member", rule });
            return None;
        }
        cx.identifier(text, span, "a member")
    }

    fn repeat(&self, cx: &mut Context<'_>, entry: &Entry) -> Option<Repeat> {
        let fields = cx.fields(&entry.node, "repeat", &grammar::REPEAT)?;
        let condition =
            cx.required(&fields, "while").and_then(|entry| condition(cx, entry, "while", self.names()));
        let delay = fields.get("delay").and_then(|entry| pause(cx, entry));
        let max = cx.count_of(&fields, "max");
        Some(Repeat {
            condition: condition?,
            delay: delay.unwrap_or_default(),
            max: max.unwrap_or(grammar::USUAL_ROUNDS),
        })
    }

    /// Seconds or a duration, at most a minute.
    fn wait(&self, cx: &mut Context<'_>, entry: &Entry) -> Option<MemberWork> {
        let value = entry.node.scalar();
        match &value {
            Json::Number(seconds) if seconds.as_f64().is_some_and(|seconds| seconds >= 0.0) => {
                if seconds.as_f64().is_some_and(|seconds| seconds > LONGEST_PAUSE.0 as f64 / 1e6) {
                    cx.report(entry.node.span, Problem::PauseTooLong { text: format!("{seconds}s") });
                }
            }
            Json::String(text) if is_template(text) => cx.check_templates(&entry.node, self.names()),
            Json::String(_) => {
                pause(cx, entry);
            }
            _ => cx.wrong_type(&entry.node, "wait", "a duration", None),
        }
        Some(MemberWork::Wait(value))
    }
}

/// The one thing a member does.
fn work<'n>(cx: &mut Context<'_>, name: &str, node: &'n Node, fields: &Fields<'n>) -> Option<&'n Entry> {
    for &work in grammar::MEMBER.elsewhere {
        if let Some(entry) = fields.get(work) {
            cx.report(entry.key_span, Problem::NotInChain { work });
        }
    }
    let is_refused = grammar::MEMBER.elsewhere.iter().any(|work| fields.get(work).is_some());
    let mut works = grammar::MEMBER.one_of.iter().filter_map(|work| fields.get(work));
    let (what, name) = ("member", quoted(name));
    match (works.next(), works.next()) {
        (None, _) if is_refused => None,
        (None, _) => {
            cx.report(node.span, Problem::NoWork { what, name });
            None
        }
        (Some(first), Some(second)) => {
            let (first, second_key) = (first.key.clone(), second.key.clone());
            cx.report(second.key_span, Problem::TwoWorks { what, name, first, second: second_key });
            None
        }
        (Some(work), None) => {
            let strangers = grammar::MEMBER.strangers(&work.key);
            for entry in strangers.filter_map(|field| fields.get(field.name)) {
                let kind = match entry.key.as_str() {
                    "repeat" => "a `wait`",
                    _ => "a member that starts no process",
                };
                cx.report(entry.key_span, Problem::WrongPlace { field: entry.key.clone(), kind });
            }
            Some(work)
        }
    }
}

/// The names of a chain's members, as far as they are any.
fn names_in(chain: &Node) -> Vec<(&str, Span)> {
    let Value::List(members) = &chain.value else { return Vec::new() };
    let names = members.iter().filter_map(|member| member.entries().iter().find(|entry| entry.key == "name"));
    names.filter_map(|entry| Some((entry.node.text()?, entry.node.span))).collect()
}

fn condition(cx: &mut Context<'_>, entry: &Entry, field: &'static str, names: Names<'_>) -> Option<String> {
    let template = cx.expression(&entry.node, field, names)?;
    serde_json::from_str(&template.0).ok()
}

/// As of a step, but it pauses on the worker.
fn retry(cx: &mut Context<'_>, entry: &Entry) -> Retry {
    let before = cx.diagnostics.len();
    let retry = step::retry(cx, entry);
    if cx.diagnostics.len() == before {
        let pauses =
            entry.node.entries().iter().filter(|entry| ["delay", "max_delay"].contains(&&*entry.key));
        for entry in pauses {
            pause(cx, entry);
        }
    }
    Retry { max_delay: retry.max_delay.min(LONGEST_PAUSE), ..retry }
}

fn pause(cx: &mut Context<'_>, entry: &Entry) -> Option<tidegate_core::time::Span> {
    let span = cx.duration(entry)?;
    if span > LONGEST_PAUSE {
        let text = quoted(cx.source().slice(entry.node.span));
        cx.report(entry.node.span, Problem::PauseTooLong { text });
    }
    Some(span)
}
