//! `flow:` documents.

use super::calls::Call;
use super::context::{Context, Fields};
use super::document::{Declared, Firsts};
use super::step::{self, Surroundings};
use super::templates::template_of;
use super::{graph, inputs, policy};
use crate::grammar;
use crate::problem::Problem;
use crate::template::Names;
use crate::yaml::{Entry, Node};
use tidegate_core::ids::Name;
use tidegate_core::model::{Flow, Step, Template};

pub(super) fn compile(
    cx: &mut Context<'_>,
    node: &Node,
    declared: &Declared,
    firsts: &mut Firsts,
    calls: &mut Vec<Call>,
) -> Option<Flow> {
    let fields = cx.fields(node, "flow", &grammar::FLOW)?;
    let head = fields.get("flow")?;
    let name = cx.defined(head, "a flow");
    if let Some(name) = &name {
        firsts.declare(cx, "flow or action", name.as_str(), head.node.span);
    }
    let input_names = inputs::names(fields.get("inputs"));
    let before = Names { inputs: &input_names, ..Names::default() };
    let concurrency = fields.get("concurrency");
    let before_these = calls.len();
    let steps = steps(cx, &fields, &input_names, declared, calls);
    if let Some(name) = &name {
        calls[before_these..].iter_mut().for_each(|call| call.caller = name.clone());
    }
    Some(Flow {
        name: name.unwrap_or_else(|| Name::new("")),
        description: description(cx, &fields),
        inputs: inputs::compile(cx, fields.get("inputs")),
        tags: tags(cx, fields.get("tags"), before),
        concurrency: cx.count_of(&fields, "concurrency"),
        key: fields.get("key").map(|entry| cx.template(&entry.node, before)),
        when_busy: policy::when_busy(cx, &fields),
        parallel_steps: cx.count_of(&fields, "parallel_steps"),
        timeout: cx.time_of(&fields, "timeout"),
        fail_fast: fields.get("fail_fast").and_then(|entry| cx.flag(entry)).unwrap_or(false),
        outputs: outputs(cx, &fields, &input_names, declared),
        steps,
        file: Name::new(&cx.source().name),
        line: cx.line(concurrency.unwrap_or(head).key_span),
        parallel_line: fields.get("parallel_steps").map(|entry| cx.line(entry.key_span)),
    })
}

pub(super) fn description(cx: &mut Context<'_>, fields: &Fields<'_>) -> Option<String> {
    let entry = fields.get("description")?;
    cx.text(&entry.node, "description").map(|text| text.trim().to_owned())
}

fn tags(cx: &mut Context<'_>, entry: Option<&Entry>, names: Names<'_>) -> Vec<(Name, Template)> {
    let Some(entry) = entry else { return Vec::new() };
    let mut tags = Vec::new();
    for tag in cx.entries(entry) {
        let name = cx.name(&tag.key, tag.key_span, "a tag");
        let value = tag.node.scalar();
        if value.is_null() {
            cx.wrong_type(&tag.node, &tag.key, "text, a number or a boolean", None);
            continue;
        }
        cx.check_templates(&tag.node, names);
        tags.extend(name.map(|name| (name, template_of(&value))));
    }
    tags
}

fn steps(
    cx: &mut Context<'_>,
    fields: &Fields<'_>,
    inputs: &[String],
    declared: &Declared,
    calls: &mut Vec<Call>,
) -> Vec<Step> {
    let Some(entry) = fields.get("steps") else {
        let head = fields.get("flow").map_or(fields.span, |head| head.key_span);
        cx.report(head, Problem::NoSteps);
        return Vec::new();
    };
    let steps = cx.entries(entry);
    if steps.is_empty() {
        if entry.node.is_null() || matches!(entry.node.value, crate::yaml::Value::Map(_)) {
            cx.report(entry.key_span, Problem::NoSteps);
        }
        return Vec::new();
    }
    let graph = graph::compile(cx, steps);
    let outputs = declared.outputs.of_steps(steps, cx.source().pack.as_deref());
    let around = Surroundings { inputs, declared, graph: &graph, outputs: &outputs };
    let compiled =
        steps.iter().enumerate().map(|(index, entry)| step::compile(cx, index, entry, &around, calls));
    compiled.flatten().collect()
}

fn outputs(
    cx: &mut Context<'_>,
    fields: &Fields<'_>,
    inputs: &[String],
    declared: &Declared,
) -> Option<Template> {
    let entry = fields.get("outputs")?;
    cx.entries(entry);
    let entries = fields.get("steps").map_or(&[][..], |steps| steps.node.entries());
    let steps = graph::indexes(entries);
    let outputs = declared.outputs.of_steps(entries, cx.source().pack.as_deref());
    let names = Names { inputs, steps: Some(&steps), outputs: &outputs, run: true, ..Names::default() };
    Some(cx.template(&entry.node, names))
}
