//! What built-in runners are told: requests, statements, and references to secrets.

use super::words::METHODS;
use super::{Field, Keys, Place, SECRET_REFERENCE, SIZE, STATUS, Shape, words};

const PLAIN_OR_SECRET: Shape = Shape::Either(&[Shape::Plain, Shape::Object(&SECRET)]);
const PAIRS: Shape = Shape::Map(Keys::Free, &PLAIN_OR_SECRET);
const PARAMS: Shape = Shape::Either(&[Shape::Expression, Shape::List(0, &Shape::Template)]);
const MOST_REDIRECTS: u32 = 20;

pub static HTTP: Place = Place {
    id: "http",
    phrase: "`http`",
    fields: &[
        Field::new("url", Shape::Plain, "Whom to ask: `http://…` or `https://…`; may hold templates.")
            .required(),
        Field::new("method", Shape::Words(|| words(&METHODS)), "How to ask.")
            .default("`POST` if something is sent, else `GET`"),
        Field::new("query", PAIRS, "Names and values that follow the `?` of the address."),
        Field::new("headers", PAIRS, "Headers, by name."),
        Field::new("auth", Shape::Object(&AUTH), "Who asks."),
        Field::new("json", Shape::Template, "Sent as JSON."),
        Field::new("form", PAIRS, "Names and values, sent as a form."),
        Field::new("body", Shape::Plain, "Sent as text."),
        Field::new("redirects", Shape::Count(0, MOST_REDIRECTS), "How many redirections are followed.")
            .default("5"),
        Field::new("max_size", Shape::Form(&SIZE), "The largest answer that is taken.").default("`1MiB`"),
        Field::new(
            "ok",
            Shape::Either(&[Shape::Form(&STATUS), Shape::List(0, &Shape::Form(&STATUS))]),
            "Statuses that are good answers besides those from 200 to 299.",
        )
        .default("none"),
    ],
    one_of: &["json", "form", "body"],
    needs_one: false,
    later: &[],
    elsewhere: &[],
};

pub static AUTH: Place = Place {
    id: "auth",
    phrase: "`auth`",
    fields: &[
        Field::new("bearer", PLAIN_OR_SECRET, "A token."),
        Field::new("basic", Shape::Object(&BASIC), "A user and a password."),
    ],
    one_of: &["bearer", "basic"],
    needs_one: true,
    later: &[],
    elsewhere: &[],
};

pub static BASIC: Place = Place {
    id: "basic",
    phrase: "`basic`",
    fields: &[
        Field::new("user", PLAIN_OR_SECRET, "The user.").required(),
        Field::new("password", PLAIN_OR_SECRET, "The password.").required(),
    ],
    one_of: &[],
    needs_one: false,
    later: &[],
    elsewhere: &[],
};

pub static SECRET: Place = Place {
    id: "secret",
    phrase: "a secret",
    fields: &[Field::new(
        "secret",
        Shape::Form(&SECRET_REFERENCE),
        "`env:NAME` or `file:PATH`; the worker that needs it looks it up, and nothing else ever holds it.",
    )
    .required()],
    one_of: &[],
    needs_one: false,
    later: &[],
    elsewhere: &[],
};

pub static SQL: Place = Place {
    id: "sql",
    phrase: "`sql`",
    fields: &[
        Field::new("connection", Shape::Text, "The database: one of `connections`.").required(),
        Field::new("query", Shape::Text, "The statement; its text is fixed, values are bound to it."),
        Field::new("params", PARAMS, "The values that are bound, in their order.").only_with(&["query"]),
        Field::new(
            "transaction",
            Shape::List(1, &Shape::Object(&STATEMENT)),
            "Several statements: all of them happen, or none.",
        ),
    ],
    one_of: &["query", "transaction"],
    needs_one: true,
    later: &[],
    elsewhere: &[],
};

pub static STATEMENT: Place = Place {
    id: "statement",
    phrase: "a statement",
    fields: &[
        Field::new("query", Shape::Text, "The statement; its text is fixed, values are bound to it.")
            .required(),
        Field::new("params", PARAMS, "The values that are bound, in their order."),
    ],
    one_of: &[],
    needs_one: false,
    later: &[],
    elsewhere: &[],
};
