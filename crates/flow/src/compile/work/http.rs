//! Requests: `http`, a question to a server and what counts as a good answer.

use super::text::{plain, plain_or_secret};
use crate::compile::context::{Context, Fields};
use crate::compile::templates::template_of;
use crate::problem::{Problem, quoted};
use crate::size::parse_size;
use crate::template::Names;
use crate::yaml::{Entry, Node, Value};
use serde_json::{Map, Value as Json, json};
use tidegate_core::model::{Cause, Template};
use tidegate_core::protocol::LARGEST_OUTPUT;

pub(in crate::compile) const WORK: &str = "http";

const FIELDS: [&str; 11] =
    ["url", "method", "query", "headers", "auth", "json", "form", "body", "redirects", "max_size", "ok"];
/// What is sent along stands under one of these.
const CONTENTS: [&str; 3] = ["json", "form", "body"];
const METHODS: [(&str, &str); 7] = [
    ("GET", "GET"),
    ("POST", "POST"),
    ("PUT", "PUT"),
    ("PATCH", "PATCH"),
    ("DELETE", "DELETE"),
    ("HEAD", "HEAD"),
    ("OPTIONS", "OPTIONS"),
];
/// What describes the connection and the message is known to nobody but the worker.
const RESERVED: [&str; 5] = ["connection", "content-length", "host", "transfer-encoding", "upgrade"];
const HEADER_RULE: &str = "letters, digits and `-`";
const RESERVED_RULE: &str = "the worker sets this one by itself";

const USUAL_REDIRECTS: u32 = 5;
const MOST_REDIRECTS: u32 = 20;
const USUAL_SIZE: usize = 1024 * 1024;

/// The order as a template: `{"http": {method, url, …}}`.
pub(in crate::compile) fn compile(cx: &mut Context<'_>, entry: &Entry, names: Names<'_>) -> Template {
    let order = request(cx, entry, names).unwrap_or_default();
    template_of(&Json::Object(Map::from_iter([(entry.key.clone(), Json::Object(order))])))
}

fn request(cx: &mut Context<'_>, entry: &Entry, names: Names<'_>) -> Option<Map<String, Json>> {
    if let Value::Scalar { .. } = entry.node.value {
        cx.wrong_type(&entry.node, WORK, "an object", Some("write it like `{ url: https://example.org }`"));
        return None;
    }
    let fields = cx.fields(&entry.node, WORK, "`http`", &FIELDS, &[])?;
    let mut order = Map::new();
    if let Some(entry) = cx.required(&fields, "url") {
        order.insert("url".into(), url(cx, &entry.node, names));
    }
    if let Some(entry) = fields.get("query") {
        order.insert("query".into(), pairs(cx, entry, names));
    }
    if let Some(entry) = fields.get("headers") {
        order.insert("headers".into(), headers(cx, entry, &fields, names));
    }
    if let Some(entry) = fields.get("auth") {
        order.insert("auth".into(), auth(cx, entry, names).unwrap_or_default());
    }
    let content = content(cx, &fields, names);
    let usual = if content.is_some() { "POST" } else { "GET" };
    order.extend(content);
    let method = fields.get("method").and_then(|entry| cx.choice(entry, &METHODS)).unwrap_or(usual);
    order.insert("method".into(), json!(method));
    let redirects =
        fields.get("redirects").and_then(|entry| cx.count(&entry.node, "redirects", 0..=MOST_REDIRECTS));
    order.insert("redirects".into(), json!(redirects.unwrap_or(USUAL_REDIRECTS)));
    let max_size = fields.get("max_size").and_then(|entry| size(cx, &entry.node));
    order.insert("max_size".into(), json!(max_size.unwrap_or(USUAL_SIZE)));
    let ok = fields.get("ok").map(|entry| statuses(cx, entry)).unwrap_or_default();
    order.insert("ok".into(), json!(ok));
    Some(order)
}

/// Of one that is made of values only what stands before the first is known.
fn url(cx: &mut Context<'_>, node: &Node, names: Names<'_>) -> Json {
    if let Some(text) = node.text() {
        let template = ["{{", "{%", "{#"].iter().filter_map(|opening| text.find(opening)).min();
        let known = &text[..template.unwrap_or(text.len())];
        if let Some(rule) = flaw(known, template.is_some()) {
            cx.report(node.span, Problem::BadUrl { url: quoted(text), rule });
        }
    }
    plain(cx, node, "url", names)
}

fn flaw(known: &str, goes_on: bool) -> Option<&'static str> {
    let scheme = "it starts with `http://` or `https://`";
    let Some((before, rest)) = known.split_once("://") else {
        let may_become_one = goes_on && ["http", "https"].iter().any(|scheme| scheme.starts_with(known));
        return (!may_become_one).then_some(scheme);
    };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if !before.eq_ignore_ascii_case("http") && !before.eq_ignore_ascii_case("https") {
        Some(scheme)
    } else if host.contains('@') {
        Some("user and password go under `auth`")
    } else if host.is_empty() && !(goes_on && rest.is_empty()) {
        Some("it names a host, like `https://example.org/path`")
    } else if known.contains(|c: char| c.is_whitespace() || c.is_control()) {
        Some("blanks in it are written `%20`")
    } else {
        None
    }
}

/// Names and values of a query or a form.
fn pairs(cx: &mut Context<'_>, entry: &Entry, names: Names<'_>) -> Json {
    cx.entries(entry).iter().map(|pair| (pair.key.clone(), plain_or_secret(cx, pair, names))).collect()
}

fn headers(cx: &mut Context<'_>, entry: &Entry, fields: &Fields<'_>, names: Names<'_>) -> Json {
    let mut headers: Map<String, Json> = Map::new();
    for header in cx.entries(entry) {
        let name = header.key.to_ascii_lowercase();
        if let Some(problem) = header_problem(&name, header, fields) {
            cx.report(header.key_span, problem);
        }
        let value = plain_or_secret(cx, header, names);
        if headers.insert(name, value).is_some() {
            let first = entry.node.entries().iter().find(|other| other.key.eq_ignore_ascii_case(&header.key));
            let first_line = first.map_or(0, |first| cx.line(first.key_span));
            let problem = Problem::DuplicateKey { key: quoted(&header.key), first_line };
            cx.report(header.key_span, problem);
        }
    }
    Json::Object(headers)
}

fn header_problem(name: &str, header: &Entry, fields: &Fields<'_>) -> Option<Problem> {
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    let rule = match name {
        name if name.is_empty() || !name.chars().all(is_token) => Some(HEADER_RULE),
        name if RESERVED.contains(&name) => Some(RESERVED_RULE),
        _ => None,
    };
    if let Some(rule) = rule {
        return Some(Problem::BadName { name: quoted(&header.key), what: "a header", rule });
    }
    (name == "authorization" && fields.get("auth").is_some()).then(|| Problem::SaidTwice {
        first: "auth".into(),
        second: header.key.clone(),
        what: "who asks",
    })
}

/// `{ bearer: … }` or `{ basic: { user: …, password: … } }`.
fn auth(cx: &mut Context<'_>, entry: &Entry, names: Names<'_>) -> Option<Json> {
    let fields = cx.fields(&entry.node, "auth", "`auth`", &["bearer", "basic"], &[])?;
    let Some(basic) = fields.get("basic") else {
        let bearer = cx.required(&fields, "bearer")?;
        return Some(json!({ "bearer": plain_or_secret(cx, bearer, names) }));
    };
    if let Some(bearer) = fields.get("bearer") {
        let (first, second) = ("basic".to_owned(), "bearer".to_owned());
        cx.report(bearer.key_span, Problem::SaidTwice { first, second, what: "who asks" });
    }
    let fields = cx.fields(&basic.node, "basic", "`basic`", &["user", "password"], &[])?;
    let user = cx.required(&fields, "user").map(|user| plain_or_secret(cx, user, names));
    let password = cx.required(&fields, "password").map(|password| plain_or_secret(cx, password, names));
    Some(json!({ "basic": { "user": user, "password": password } }))
}

fn content(cx: &mut Context<'_>, fields: &Fields<'_>, names: Names<'_>) -> Option<(String, Json)> {
    let mut given = CONTENTS.iter().filter_map(|content| fields.get(content));
    let (first, second) = (given.next()?, given.next());
    if let Some(second) = second {
        let problem =
            Problem::SaidTwice { first: first.key.clone(), second: second.key.clone(), what: "what is sent" };
        cx.report(second.key_span, problem);
    }
    let value = match first.key.as_str() {
        "form" => pairs(cx, first, names),
        "body" => plain(cx, &first.node, "body", names),
        _ => {
            cx.check_templates(&first.node, names);
            first.node.json()
        }
    };
    Some((first.key.clone(), value))
}

fn size(cx: &mut Context<'_>, node: &Node) -> Option<usize> {
    let text = match &node.value {
        Value::Scalar { text, .. } if !node.is_null() => text,
        _ => {
            cx.wrong_type(node, "max_size", "a size", None);
            return None;
        }
    };
    let size = parse_size(text);
    let problem = match size {
        None => Problem::BadSize { text: quoted(text) },
        Some(size) if !(1..=LARGEST_OUTPUT).contains(&size) => {
            Problem::OutOfRange { field: "max_size".into(), min: 1, max: LARGEST_OUTPUT as u64 }
        }
        Some(_) => return size,
    };
    cx.report(node.span, problem);
    None
}

/// `ok: 404`, `ok: [404, 3xx]`.
fn statuses(cx: &mut Context<'_>, entry: &Entry) -> Vec<Cause> {
    let nodes = match &entry.node.value {
        Value::List(nodes) => nodes.as_slice(),
        _ => std::slice::from_ref(&entry.node),
    };
    let mut statuses = Vec::new();
    for node in nodes {
        match &node.value {
            Value::Scalar { text, .. } if is_status(text) => statuses.push(Cause::status(text)),
            Value::Scalar { text, .. } => {
                cx.report(node.span, Problem::BadStatus { text: quoted(text) });
            }
            _ => cx.wrong_type(node, "ok", "a status", None),
        }
    }
    statuses
}

/// Three digits, of which the last may be left open.
fn is_status(text: &str) -> bool {
    let digit = |byte: u8| byte.is_ascii_digit() || byte == b'x';
    matches!(text.as_bytes(), [b'1'..=b'5', second, third] if digit(*second) && digit(*third))
}
