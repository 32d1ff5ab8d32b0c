//! Statements: `sql`, one for a database, or several in one transaction. Their texts are fixed when files are read.

use crate::compile::connections::Connections;
use crate::compile::context::{Context, Fields};
use crate::compile::templates::template_of;
use crate::grammar;
use crate::problem::Problem;
use crate::template::{Names, is_template, single_expression};
use crate::yaml::{Entry, Node, Value};
use serde_json::{Value as Json, json};
use tidegate_core::model::Template;

pub(in crate::compile) const WORK: &str = "sql";

/// The order as a template: `{"sql": {connection, statements, transaction}}`.
pub(in crate::compile) fn compile(
    cx: &mut Context<'_>,
    entry: &Entry,
    connections: &Connections,
    names: Names<'_>,
) -> Template {
    template_of(&json!({ WORK: order(cx, &entry.node, connections, names) }))
}

fn order(cx: &mut Context<'_>, node: &Node, connections: &Connections, names: Names<'_>) -> Option<Json> {
    if let Value::Scalar { .. } = node.value {
        let help = "write it like `{ connection: warehouse, query: select 1 }`";
        cx.wrong_type(node, WORK, "an object", Some(help));
        return None;
    }
    let fields = cx.fields(node, WORK, &grammar::SQL)?;
    let connection = cx.required(&fields, "connection").and_then(|entry| connections.named(cx, &entry.node));
    let transaction = fields.get("transaction");
    let statements = match transaction {
        Some(list) => {
            for entry in ["query", "params"].iter().filter_map(|field| fields.get(field)) {
                let (first, second) = ("transaction".to_owned(), entry.key.clone());
                let problem = Problem::SaidTwice { first, second, what: "what the database is asked" };
                cx.report(entry.key_span, problem);
            }
            let nodes = cx.list(list, Some("write it like `[{ query: … }, { query: … }]`"))?;
            if nodes.is_empty() {
                cx.report(list.node.span, Problem::NoStatement);
            }
            let mut statements = Vec::new();
            for node in nodes {
                let fields = cx.fields(node, "transaction", &grammar::STATEMENT);
                statements.extend(fields.map(|fields| statement(cx, &fields, names)));
            }
            statements
        }
        None => vec![statement(cx, &fields, names)],
    };
    Some(json!({ "connection": connection, "statements": statements, "transaction": transaction.is_some() }))
}

/// `{ query: "select … $1", params: [7] }`.
fn statement(cx: &mut Context<'_>, fields: &Fields<'_>, names: Names<'_>) -> Json {
    let query = cx.required(fields, "query").and_then(|entry| query(cx, &entry.node));
    let params = fields.get("params").map(|entry| params(cx, entry, names));
    json!({ "query": query, "params": params.unwrap_or_else(|| json!([])) })
}

/// A value inside it would be read as part of the statement.
fn query(cx: &mut Context<'_>, node: &Node) -> Option<Json> {
    let text = cx.text(node, "query")?;
    if is_template(text) {
        cx.report(node.span, Problem::TemplateInQuery);
    } else if text.trim().is_empty() {
        cx.report(node.span, Problem::NoStatement);
    }
    Some(json!(text))
}

/// A list, or one expression that gives a list.
fn params(cx: &mut Context<'_>, entry: &Entry, names: Names<'_>) -> Json {
    let is_expression = entry.node.text().is_some_and(|text| single_expression(text).is_some());
    if !is_expression {
        cx.list(entry, Some("write it like `[7, \"{{ inputs.name }}\"]`"));
    }
    cx.check_templates(&entry.node, names);
    entry.node.json()
}
