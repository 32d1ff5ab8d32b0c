//! What steps put out, as far as it can be known before they run: read off the files as they stand, before anything in
//! them is checked.

use super::work::{chain, http, process, sql};
use crate::chain::ROUNDS;
use crate::template::Outline;
use crate::yaml::{Entry, Node, Value};
use std::collections::HashMap;

const PROCESS: [&str; 6] = ["exit_code", "json", "stdout", "stdout_cut", "stderr", "stderr_cut"];
const ANSWER: [&str; 4] = ["status", "headers", "body", "body_base64"];
const ROWS: [&str; 2] = ["rows", "count"];
const RESULTS: [&str; 1] = ["results"];
const LOOP: [&str; 4] = ["items", "done", "failed", "cancelled"];

/// What flows and actions put out, by their whole names.
#[derive(Default)]
pub(super) struct Outputs {
    flows: HashMap<String, Outline>,
    actions: HashMap<String, Outline>,
}

impl Outputs {
    /// Of all documents, each with the pack it stands in.
    pub fn of<'n>(documents: impl Iterator<Item = (Option<&'n str>, &'n Node)>) -> Outputs {
        let mut outputs = Outputs::default();
        for (pack, node) in documents {
            let entries = node.entries();
            let head = |kind| get(entries, kind).and_then(|entry| entry.node.text());
            if let Some(flow) = head("flow") {
                outputs
                    .flows
                    .insert(whole(pack, flow), get(entries, "outputs").map_or(Outline::of(&[]), value));
            } else if let Some(action) = head("action") {
                outputs.actions.insert(whole(pack, action), by_itself(entries));
            }
        }
        outputs
    }

    /// Of each of these steps, in their order.
    pub fn of_steps(&self, steps: &[Entry], pack: Option<&str>) -> Vec<Outline> {
        steps.iter().map(|step| self.of_step(step.node.entries(), pack)).collect()
    }

    fn of_step(&self, fields: &[Entry], pack: Option<&str>) -> Outline {
        if get(fields, "with_items").is_some() {
            return Outline::of(&LOOP);
        }
        let called = |kind, known: &HashMap<String, Outline>| {
            let name = get(fields, kind)?.node.text()?;
            known.get(&whole(pack, name)).or_else(|| known.get(name)).cloned()
        };
        let called = called("action", &self.actions).or_else(|| called("flow", &self.flows));
        called.unwrap_or_else(|| by_itself(fields))
    }
}

/// Inside of a pack its name may be left out.
fn whole(pack: Option<&str>, name: &str) -> String {
    match pack {
        Some(pack) if !name.contains('.') => format!("{pack}.{name}"),
        _ => name.to_owned(),
    }
}

/// What a worker does by itself, for a step, an action or a member of a chain.
pub(super) fn by_itself(fields: &[Entry]) -> Outline {
    let of = |entry: &Entry| match entry.key.as_str() {
        key if process::WORKS.contains(&key) => Some(Outline::of(&PROCESS)),
        http::WORK => Some(Outline::of(&ANSWER)),
        sql::WORK => Some(match get(entry.node.entries(), "transaction") {
            Some(_) => Outline::of(&RESULTS),
            None => Outline::of(&ROWS),
        }),
        chain::WORK => Some(members(&entry.node)),
        _ => None,
    };
    let once = fields.iter().find_map(of).unwrap_or_default();
    match get(fields, "repeat") {
        Some(_) => once.with(ROUNDS, Outline::Anything),
        None => once,
    }
}

fn members(chain: &Node) -> Outline {
    let Value::List(nodes) = &chain.value else { return Outline::Anything };
    let member = |node: &Node| {
        let name = get(node.entries(), "name")?.node.text()?.to_owned();
        Some((name, Outline::of(&["state"]).with("output", by_itself(node.entries()))))
    };
    Outline::Object(nodes.iter().filter_map(member).collect())
}

/// Of something that is written out, with templates in it.
fn value(entry: &Entry) -> Outline {
    match &entry.node.value {
        Value::Map(entries) => {
            Outline::Object(entries.iter().map(|entry| (entry.key.clone(), value(entry))).collect())
        }
        _ => Outline::Anything,
    }
}

fn get<'n>(entries: &'n [Entry], key: &str) -> Option<&'n Entry> {
    entries.iter().find(|entry| entry.key == key)
}
