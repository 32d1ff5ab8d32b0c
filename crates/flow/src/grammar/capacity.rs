//! What there is to share: limits, pools, connections. The operator's documents.

use super::action::{PACE, SHARE};
use super::flow::TIME;
use super::{Field, Keys, MAX_AT_ONCE, MAX_SLOTS, Place, SECRET, Shape};

const MOST_CONNECTIONS: u32 = 1_000;

pub static CAPACITY: Place = Place {
    id: "capacity",
    phrase: "a document of limits",
    fields: &[
        Field::new("limits", Shape::Object(&LIMITS), "What holds for all runs and actions together."),
        Field::new(
            "pools",
            Shape::Map(Keys::Names, &Shape::Object(&POOL)),
            "Things of which there are only so many, by name.",
        ),
        Field::new(
            "connections",
            Shape::Map(Keys::Names, &Shape::Object(&CONNECTION)),
            "Databases that `sql` asks, by name.",
        ),
    ],
    one_of: &[],
    needs_one: false,
    later: &[],
    elsewhere: &[],
};

pub static LIMITS: Place = Place {
    id: "limits",
    phrase: "`limits`",
    fields: &[
        Field::new(
            "runs",
            Shape::Either(&[Shape::Count(1, MAX_AT_ONCE), Shape::Words(|| vec!["unlimited"])]),
            "Runs of flows at once.",
        )
        .default("10"),
        Field::new("tags", Shape::List(0, &Shape::Object(&TAG)), "Bounds on runs that carry a tag.")
            .default("none"),
        Field::new(
            "actions",
            Shape::List(0, &Shape::Object(&MATCH)),
            "Bounds on actions, by name; of `each` the most specific wins, every `total` counts.",
        )
        .default("none"),
    ],
    one_of: &[],
    needs_one: false,
    later: &[],
    elsewhere: &[],
};

pub static TAG: Place = Place {
    id: "tag",
    phrase: "a limit on tags",
    fields: &[
        Field::new("tag", Shape::Text, "`NAME=VALUE` with `limit`, or `NAME` with `per_value`.").required(),
        Field::new("limit", Shape::Count(1, MAX_AT_ONCE), "Runs at once that carry this value."),
        Field::new("per_value", Shape::Count(1, MAX_AT_ONCE), "Runs at once for each value of the tag."),
    ],
    one_of: &["limit", "per_value"],
    needs_one: true,
    later: &[],
    elsewhere: &[],
};

pub static MATCH: Place = Place {
    id: "match",
    phrase: "a limit on actions",
    fields: &[
        Field::new("match", Shape::Text, "The name of an action, perhaps with a final `*`.").required(),
        Field::new("each", Shape::Object(&BOUNDS), "For each action that matches, unless it says so itself."),
        Field::new("total", Shape::Object(&BOUNDS), "For all that match, together."),
    ],
    one_of: &[],
    needs_one: false,
    later: &[],
    elsewhere: &[],
};

pub static BOUNDS: Place = Place {
    id: "bounds",
    phrase: "bounds on actions",
    fields: &[
        Field::new("concurrency", Shape::Count(1, MAX_AT_ONCE), "Attempts at once."),
        Field::new("rate", PACE, "How often they may start."),
        Field::new("quota", SHARE, "How often they may start in each window of the calendar."),
    ],
    one_of: &[],
    needs_one: false,
    later: &[],
    elsewhere: &[],
};

pub static POOL: Place = Place {
    id: "pool",
    phrase: "a pool",
    fields: &[
        Field::new("slots", Shape::Count(1, MAX_SLOTS), "How many units there are.").required(),
        Field::new(
            "lease",
            TIME,
            "How long a worker that has gone silent keeps its units: from `1s` to `1h`.",
        )
        .default("`30s`"),
    ],
    one_of: &[],
    needs_one: false,
    later: &[],
    elsewhere: &[],
};

pub static CONNECTION: Place = Place {
    id: "connection",
    phrase: "a connection",
    fields: &[
        Field::new(
            "url",
            Shape::Either(&[Shape::Text, Shape::Object(&SECRET)]),
            "`postgres://…`, `mysql://…` or `sqlite:PATH`, as it stands or as a secret.",
        )
        .required(),
        Field::new("max", Shape::Count(1, MOST_CONNECTIONS), "How many a worker keeps open at most.")
            .default("4"),
    ],
    one_of: &[],
    needs_one: false,
    later: &[],
    elsewhere: &[],
};
