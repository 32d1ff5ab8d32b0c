//! Packs: folders of flows and actions whose names start with that of the folder.
//!
//! Inside of a pack the first part of a name may be left out, where something is defined and where it is called. A pack
//! says what it needs and never what there is: capacity belongs to whoever uses it.

use super::File;
use super::calls::{Call, Callee};
use super::context::Context;
use crate::diagnostics::Diagnostics;
use crate::problem::{Problem, quoted};
use crate::source::Span;
use crate::yaml::{Entry, Node};
use std::collections::BTreeSet;
use tidegate_core::ids::Name;
use tidegate_core::model::{Action, Flow, Requirement, Work};

impl Context<'_> {
    /// The whole name of what a document defines.
    pub fn defined(&mut self, head: &Entry, what: &'static str) -> Option<Name> {
        let Some(pack) = self.source().pack.clone() else { return self.named(head, what) };
        let text = self.text(&head.node, &head.key)?;
        match text.split_once('.') {
            None => {
                self.name(text, head.node.span, what)?;
                let whole = format!("{pack}.{text}");
                // What is wrong with the pack itself is said once.
                if is_name(&pack) { self.name(&whole, head.node.span, what) } else { Some(Name::from(whole)) }
            }
            Some((prefix, _)) if prefix == pack => self.name(text, head.node.span, what),
            Some(_) => {
                self.report(head.node.span, Problem::WrongPack { name: quoted(text), pack });
                None
            }
        }
    }
}

const PACK_RULE: &str =
    "the names of what it defines start with that of its folder: letters, digits, `-` and `_`";

fn is_name(pack: &str) -> bool {
    pack.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
}

/// Of each pack that cannot be one, its first file says so.
pub(super) fn check_names(files: &[File<'_>], diagnostics: &mut Diagnostics) {
    let mut told = BTreeSet::new();
    for (file, pack) in files.iter().enumerate().filter_map(|(file, one)| Some((file, one.pack?))) {
        if !is_name(pack) && told.insert(pack) {
            let problem = Problem::BadName { name: quoted(pack), what: "a pack", rule: PACK_RULE };
            diagnostics.report(file, Span::default(), problem);
        }
    }
}

pub(super) fn refuse_capacity(cx: &mut Context<'_>, node: &Node) {
    if cx.source().pack.is_some() {
        for entry in node.entries() {
            cx.report(entry.key_span, Problem::CapacityInPack { what: quoted(&entry.key) });
        }
    }
}

/// A name that is called inside of a pack means what the pack itself defines, if it does.
pub(super) fn resolve(flows: &mut [Flow], actions: &[Action], calls: &mut [Call], diagnostics: &Diagnostics) {
    let flow_names: BTreeSet<Name> = flows.iter().map(|flow| flow.name.clone()).collect();
    let action_names: BTreeSet<&Name> = actions.iter().map(|action| &action.policy.action).collect();
    let own_flow = |pack: &str, name: &Name| Some(whole(pack, name)).filter(|own| flow_names.contains(own));
    let own_action =
        |pack: &str, name: &Name| Some(whole(pack, name)).filter(|own| action_names.contains(own));
    for flow in flows {
        let Some(pack) = diagnostics.pack_of(flow.file.as_str()) else { continue };
        for step in &mut flow.steps {
            match &mut step.work {
                Work::Action { action, .. } => {
                    if let Some(own) = own_action(pack, action) {
                        step.needs.runner = Requirement::function(own.clone()).runner;
                        *action = own;
                    }
                }
                Work::Flow { flow, .. } => {
                    if let Some(own) = own_flow(pack, flow) {
                        *flow = own;
                    }
                }
                _ => {}
            }
        }
    }
    for call in calls {
        let Some(pack) = &diagnostics.source(call.file).pack else { continue };
        let own = match &call.callee {
            Callee::Action(name) => own_action(pack, name).map(Callee::Action),
            Callee::Flow(name) => own_flow(pack, name).map(Callee::Flow),
        };
        if let Some(own) = own {
            call.callee = own;
        }
    }
}

fn whole(pack: &str, name: &Name) -> Name {
    Name::from(format!("{pack}.{name}"))
}

/// What was probably meant by a name that nobody defines: in a pack something of its own, then something of the pack
/// that is named, then anything.
pub(super) fn nearest<'k>(
    cx: &Context<'_>,
    name: &str,
    known: impl Iterator<Item = &'k str> + Clone,
) -> Option<String> {
    let of = |pack: &str| {
        let prefix = format!("{pack}.");
        let names: Vec<&str> =
            known.clone().filter_map(|known| known.strip_prefix(prefix.as_str())).collect();
        move |name: &str| cx.nearest(name, names.iter().copied())
    };
    let own = cx.source().pack.as_ref().and_then(|pack| of(pack)(name));
    let named = || name.split_once('.').and_then(|(pack, rest)| Some(format!("{pack}.{}", of(pack)(rest)?)));
    own.or_else(named).or_else(|| cx.nearest(name, known.clone()))
}
