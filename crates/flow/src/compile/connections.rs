//! `connections:`: databases by name. Steps and actions take along what they need of them when files are read, so that
//! nobody has to look a name up when they run.

use super::context::Context;
use super::document::Firsts;
use super::work::text::secret;
use crate::grammar;
use crate::problem::{Problem, quoted};
use crate::source::Span;
use crate::template::is_template;
use crate::yaml::{Entry, Node, Value};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::ops::Range;

const USUAL_MAX: u32 = 4;
const SCHEME_RULE: &str = "it starts with `postgres://`, `mysql://` or `sqlite:`";

/// Every connection that is declared, as orders hold it.
#[derive(Default)]
pub(super) struct Connections(BTreeMap<String, Json>);

impl Connections {
    pub fn declare(&mut self, cx: &mut Context<'_>, entry: &Entry, firsts: &mut Firsts) {
        for connection in cx.entries(entry) {
            cx.name(&connection.key, connection.key_span, "a connection");
            firsts.declare(cx, "connection", &connection.key, connection.key_span);
            let compiled = compile(cx, connection).unwrap_or_default();
            self.0.entry(connection.key.clone()).or_insert(compiled);
        }
    }

    /// The connection that `node` names.
    pub fn named(&self, cx: &mut Context<'_>, node: &Node) -> Option<Json> {
        let name = cx.text(node, "connection")?;
        if let Some(connection) = self.0.get(name) {
            return Some(connection.clone());
        }
        let meant = cx.nearest(name, self.0.keys().map(String::as_str));
        cx.report(node.span, Problem::UnknownConnection { connection: quoted(name), meant });
        None
    }
}

/// `warehouse: { url: "postgres://…", max: 4 }`.
fn compile(cx: &mut Context<'_>, entry: &Entry) -> Option<Json> {
    let fields = cx.fields(&entry.node, &entry.key, &grammar::CONNECTION)?;
    let max = cx.count_of(&fields, "max");
    let url = cx.required(&fields, "url").map(|entry| match &entry.node.value {
        Value::Map(_) => secret(cx, &entry.node),
        _ => url(cx, &entry.node),
    });
    Some(json!({ "name": entry.key, "url": url, "max": max.unwrap_or(USUAL_MAX) }))
}

/// From here on nothing that is drawn shows the password in it.
fn url(cx: &mut Context<'_>, node: &Node) -> Json {
    let Some(text) = cx.text(node, "url") else { return Json::Null };
    let mut shown = text.to_owned();
    // From the end, so that the places before it stay what they are.
    for password in passwords(text).into_iter().rev() {
        cx.conceal(node.span, text, password.clone());
        shown.replace_range(password, "***");
    }
    if let Some(rule) = flaw(text) {
        cx.report(node.span, Problem::BadDatabase { url: quoted(&shown), rule });
    }
    Json::String(text.to_owned())
}

/// Where in a URL passwords stand: after the user, and among the options.
fn passwords(url: &str) -> Vec<Range<usize>> {
    let Some(start) = url.find("://").map(|at| at + 3) else { return Vec::new() };
    let options = url[start..].find('?').map_or(url.len(), |at| start + at);
    let of_user = url[start..options].rfind('@').and_then(|at| {
        let password = start + url[start..start + at].find(':')? + 1;
        Some(password..start + at)
    });
    let of_options = url[options..].match_indices("password=").map(|(at, name)| {
        let password = options + at + name.len();
        password..url[password..].find('&').map_or(url.len(), |end| password + end)
    });
    of_user.into_iter().chain(of_options).filter(|range| !range.is_empty()).collect()
}

fn flaw(url: &str) -> Option<&'static str> {
    if is_template(url) {
        return Some("it is fixed: values cannot be put into it");
    }
    let (scheme, rest) = url.split_once(':').unwrap_or((url, ""));
    match scheme {
        "sqlite" if rest == ":memory:" => Some("a database in memory would end with its connection"),
        "sqlite" if rest.trim_start_matches('/').is_empty() => {
            Some("it names a file, like `sqlite:data/warehouse.db`")
        }
        "sqlite" => None,
        "postgres" | "postgresql" | "mysql" | "mariadb" => match rest.strip_prefix("//") {
            Some(place) if !place.starts_with(['/', '?']) && !place.is_empty() => None,
            _ => Some("it names a host, like `postgres://user@host/database`"),
        },
        _ => Some(SCHEME_RULE),
    }
}

impl Context<'_> {
    /// Hides bytes of a scalar's text wherever the file is drawn.
    fn conceal(&mut self, scalar: Span, text: &str, bytes: Range<usize>) {
        let place = self.locate(scalar, text, bytes.start, bytes.end);
        self.diagnostics.conceal(self.file, place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_found_wherever_they_stand() {
        let found = |url: &str| passwords(url).into_iter().map(|at| url[at].to_owned()).collect::<Vec<_>>();
        assert_eq!(found("postgres://me:se@cr:et@host/db?x=a@b"), ["se@cr:et"]);
        assert_eq!(found("postgres://me@host:5432/db?password=a:b&x=y"), ["a:b"]);
        assert_eq!(found("postg?res://me:secret@host/db"), ["secret"], "however it is misspelt");
        let nothing =
            ["postgres://me@host:1/db", "postgres://host:1/db", "mysql://me:@h/db", "sqlite:me:x@y"];
        for url in nothing {
            assert!(found(url).is_empty(), "{url}");
        }
    }
}
