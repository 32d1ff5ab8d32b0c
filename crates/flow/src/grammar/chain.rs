//! Chains: their members, and how often something is repeated.

use super::flow::{ASK_DATABASE, ASK_SERVER, DIRECTORY, ENVIRONMENT, RUN, SHELL, TIME};
use super::{Field, PAUSE, Place, RETRY, Shape};

/// Rounds of one `repeat`, unless it says otherwise, and at most.
pub(crate) const USUAL_ROUNDS: u32 = 1_000;
const MOST_ROUNDS: u32 = 100_000;

/// What a worker can do by itself.
pub(super) const BUILT_IN: &[&str] = &["run", "shell", "http", "sql", "do"];
pub(super) const MEMBERS: Shape = Shape::List(1, &Shape::Object(&MEMBER));

pub static MEMBER: Place = Place {
    id: "member",
    phrase: "a member",
    fields: &[
        Field::new("name", Shape::Text, "How those after it, and its chain's output, call it.").required(),
        RUN,
        SHELL,
        ASK_SERVER,
        ASK_DATABASE,
        Field::new("wait", Shape::Form(&PAUSE), "Pauses on the worker, for a minute at most."),
        Field::new("do", Shape::List(1, &Shape::Object(&MEMBER)), "A chain inside the chain."),
        Field::new("when", Shape::Expression, "A condition: if it is false the member is skipped."),
        Field::new("repeat", Shape::Object(&REPEAT), "Do it again and again.")
            .default("once")
            .only_with(BUILT_IN),
        ENVIRONMENT,
        DIRECTORY,
        Field::new("timeout", TIME, "How long one try of it may run.").default("that of the step"),
        Field::new("retry", Shape::Object(&RETRY), "When it is tried again, within the attempt.")
            .default("one try"),
    ],
    one_of: &["run", "shell", "http", "sql", "wait", "do"],
    needs_one: true,
    later: &[],
    elsewhere: &["action", "flow"],
};

pub static REPEAT: Place = Place {
    id: "repeat",
    phrase: "`repeat`",
    fields: &[
        Field::new("while", Shape::Expression, "Asked after each round: if it is true there is another.")
            .required(),
        Field::new("delay", TIME, "Between two rounds, a minute at most.").default("none"),
        Field::new(
            "max",
            Shape::Count(1, MOST_ROUNDS),
            "So many rounds; if there should be more, it has failed.",
        )
        .default("1000"),
    ],
    one_of: &[],
    needs_one: false,
    later: &[],
    elsewhere: &[],
};
