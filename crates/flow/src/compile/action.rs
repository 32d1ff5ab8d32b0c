//! `action:` documents: something with a name that flows can do, and the limits that travel with it.

use super::context::{Context, Fields};
use super::document::Firsts;
use super::pools::{self, Pools};
use super::{flow, inputs, policy, work};
use crate::problem::{Problem, quoted};
use crate::template::Names;
use crate::yaml::Node;
use tidegate_core::model::{Action, ActionPolicy, ActionWork, MAX_LOSSES, Requirement, Retry};

const FIELDS: [&str; 14] = [
    "action",
    "description",
    "inputs",
    "run",
    "env",
    "cwd",
    "worker",
    "concurrency",
    "key",
    "when_busy",
    "rate",
    "quota",
    "line",
    "pools",
];
const LATER: [&str; 6] = ["http", "sql", "shell", "do", "retry", "timeout"];

pub(super) fn compile(
    cx: &mut Context<'_>,
    node: &Node,
    pools: &Pools,
    firsts: &mut Firsts,
) -> Option<Action> {
    let fields = cx.fields(node, "action", "an action", &FIELDS, &LATER)?;
    let head = fields.get("action")?;
    let name = cx.named(head, "an action");
    if let Some(name) = &name {
        firsts.declare(cx, "action", name.as_str(), head.node.span);
    }
    let input_names = inputs::names(fields.get("inputs"));
    let names = Names { inputs: &input_names, ..Names::default() };
    let work = work(cx, &fields, names);
    let description = flow::description(cx, &fields);
    let inputs = inputs::compile(cx, fields.get("inputs"));
    let key = fields.get("key").map(|entry| cx.template(&entry.node, names));
    let policy = ActionPolicy {
        each: policy::each(cx, &fields),
        keyed: key.is_some(),
        when_busy: policy::when_busy(cx, &fields),
        line: policy::line(cx, fields.get("line")),
        pools: pools::demands(cx, fields.get("pools"), pools),
        needs: match work {
            ActionWork::Run(_) => Requirement::process(),
            ActionWork::Function => Requirement::function(name.clone()?),
        },
        retry: Retry::ONCE,
        max_losses: MAX_LOSSES,
        timeout: None,
        origin: cx.origin(head.key_span),
        action: name?,
    };
    Some(Action { policy, description, inputs, key, work })
}

/// `run: […]`, or a function that a worker registered (`worker: true`, which is also the default).
fn work(cx: &mut Context<'_>, fields: &Fields<'_>, names: Names<'_>) -> ActionWork {
    let worker = fields.get("worker").and_then(|entry| cx.flag(entry).map(|worker| (entry, worker)));
    let Some(run) = fields.get("run") else {
        for field in ["env", "cwd"] {
            if let Some(entry) = fields.get(field) {
                let problem = Problem::WrongPlace { field: field.to_owned(), kind: "a function of a worker" };
                cx.report(entry.key_span, problem);
            }
        }
        return ActionWork::Function;
    };
    if let Some((entry, true)) = worker {
        let action =
            fields.get("action").map_or_else(String::new, |head| quoted(head.node.text().unwrap_or("")));
        let problem =
            Problem::TwoWorks { step: action, first: "run".to_owned(), second: "worker".to_owned() };
        cx.report(entry.key_span, problem);
    }
    ActionWork::Run(work::run(cx, run, fields, names))
}
