//! Which kind of document each one is, and the order they are compiled in: capacity before demand.

use super::calls::Known;
use super::connections::Connections;
use super::context::Context;
use super::outlines::Outputs;
use super::packs;
use super::pools::Pools;
use super::{Document, Elsewhere, action, flow, limits, recursion};
use crate::diagnostics::Diagnostics;
use crate::problem::{Problem, quoted};
use crate::source::Span;
use crate::yaml::{Node, Value};
use std::collections::{BTreeMap, HashMap};
use tidegate_core::ids::Name;
use tidegate_core::model::{Action, ActionWork, Flow, LimitsDocument, Work};

/// First words of documents that belong to the language but do not work yet.
const LATER: [&str; 3] = ["trigger", "rule", "schedule"];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Flow,
    Action,
    Capacity,
}

/// What flows and actions may use.
pub(super) struct Declared {
    pub pools: Pools,
    pub connections: Connections,
    pub outputs: Outputs,
}

pub(super) fn compile(
    documents: &[(usize, Node)],
    elsewhere: Elsewhere<'_>,
    diagnostics: &mut Diagnostics,
) -> Document {
    let kinds: Vec<Option<Kind>> =
        documents.iter().map(|(file, node)| kind(&mut Context { file: *file, diagnostics }, node)).collect();
    let mut limits = LimitsDocument::default();
    let (mut connections, mut firsts) = (Connections::default(), Firsts::default());
    for ((file, node), _) in documents.iter().zip(&kinds).filter(|(_, kind)| **kind == Some(Kind::Capacity)) {
        let cx = &mut Context { file: *file, diagnostics };
        packs::refuse_capacity(cx, node);
        limits::compile(cx, node, &mut limits, &mut connections, &mut firsts);
    }
    let limited = documents.iter().zip(&kinds).any(|((_, node), kind)| {
        *kind == Some(Kind::Capacity) && node.entries().iter().any(|entry| entry.key != "connections")
    });
    let pools = Pools::new(&limits.pools, elsewhere.pools(), limited);
    let packs = documents.iter().map(|(file, node)| (diagnostics.source(*file).pack.as_deref(), node));
    let outputs = Outputs::of(packs);
    let declared = Declared { pools, connections, outputs };
    let (mut flows, mut actions): (Vec<Flow>, Vec<Action>) = Default::default();
    let mut found = Vec::new();
    for ((file, node), kind) in documents.iter().zip(&kinds) {
        let mut cx = Context { file: *file, diagnostics };
        match kind {
            Some(Kind::Flow) => {
                flows.extend(flow::compile(&mut cx, node, &declared, &mut firsts, &mut found))
            }
            Some(Kind::Action) => actions.extend(action::compile(&mut cx, node, &declared, &mut firsts)),
            Some(Kind::Capacity) | None => {}
        }
    }
    packs::resolve(&mut flows, &actions, &mut found, diagnostics);
    let known = Known { flows: &flows, actions: &actions, pools: &declared.pools, elsewhere };
    known.check(&found, diagnostics);
    // What is broken is left out, and without it the rest may look endless.
    if diagnostics.is_empty() {
        recursion::check(&flows, &found, diagnostics);
    }
    carry_out(&mut flows, &actions);
    Document { flows, limits: limited.then_some(limits), actions, files: Vec::new() }
}

/// A step whose action is carried out by a built-in runner needs a worker that has it, not one with a function of that
/// name.
fn carry_out(flows: &mut [Flow], actions: &[Action]) {
    let actions: BTreeMap<&Name, &Action> =
        actions.iter().map(|action| (&action.policy.action, action)).collect();
    for step in flows.iter_mut().flat_map(|flow| &mut flow.steps) {
        let Work::Action { action, .. } = &step.work else { continue };
        let Some(Action { policy, work, .. }) = actions.get(action) else { continue };
        if let ActionWork::Order(_) = work {
            step.needs.runner = policy.needs.runner.clone();
        }
    }
}

fn kind(cx: &mut Context<'_>, node: &Node) -> Option<Kind> {
    if node.is_null() {
        return None;
    }
    if !matches!(node.value, Value::Map(_)) {
        cx.report(node.span, Problem::UnknownDocument);
        return None;
    }
    let entry = |field: &str| node.entries().iter().find(|entry| entry.key == field);
    let known = [
        ("flow", Kind::Flow),
        ("action", Kind::Action),
        ("limits", Kind::Capacity),
        ("pools", Kind::Capacity),
        ("connections", Kind::Capacity),
    ];
    // `pools` is a field of actions too, so the first words that are there decide.
    let found: Vec<_> =
        known.iter().filter_map(|(word, kind)| entry(word).map(|entry| (*word, *kind, entry))).collect();
    let Some(&(first, kind, _)) = found.first() else {
        let later = node.entries().iter().find(|entry| LATER.contains(&entry.key.as_str()));
        match later {
            Some(entry) => cx.report(entry.key_span, Problem::NotSupported { what: quoted(&entry.key) }),
            None => {
                let span = node.entries().first().map_or(node.span, |entry| entry.key_span);
                cx.report(span, Problem::UnknownDocument);
            }
        }
        return None;
    };
    let other =
        found.iter().find(|(word, other, _)| *other != kind && !(kind == Kind::Action && *word == "pools"));
    if let Some((second, _, entry)) = other {
        cx.report(entry.key_span, Problem::TwoDocuments { first, second });
        return None;
    }
    Some(kind)
}

/// Where each name was declared first.
#[derive(Default)]
pub(super) struct Firsts(HashMap<(&'static str, String), String>);

impl Firsts {
    /// Reports the second declaration of the same thing; true for the first.
    pub fn declare(&mut self, cx: &mut Context<'_>, what: &'static str, name: &str, span: Span) -> bool {
        let place = format!("{}:{}", cx.source().name, cx.line(span));
        match self.0.get(&(what, name.to_owned())) {
            Some(first) => {
                let first = first.clone();
                cx.report(span, Problem::DeclaredTwice { what, name: quoted(name), first });
                false
            }
            None => {
                self.0.insert((what, name.to_owned()), place);
                true
            }
        }
    }
}
