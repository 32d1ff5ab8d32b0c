//! Flows, their inputs and their steps.

use super::chain::{BUILT_IN, MEMBERS};
use super::words::{INPUT_TYPES, ON_FAILURE_WORDS, WHEN_BUSY};
use super::{
    DURATION, Field, HTTP, Keys, MAX_AT_ONCE, MAX_ATTEMPTS, MAX_SLOTS, NEEDS, Place, REPEAT, RETRY, SECRET,
    SQL,
};
use super::{Shape, WAIT, words};
use tidegate_core::model::MAX_ITEMS;

pub(super) const PROCESSES: &[&str] = &["run", "shell"];
/// What a worker carries out.
const CARRIED_OUT: &[&str] = &["run", "shell", "http", "sql", "do", "action"];
/// What can be done for each item of a list.
const LOOPED: &[&str] = &["run", "shell", "http", "sql", "do", "action", "flow"];

pub(super) const INPUTS: Shape = Shape::Map(Keys::Identifiers, &Shape::Object(&INPUT));
pub(super) const ARGV: Shape = Shape::List(1, &Shape::Plain);
pub(super) const ENV: Shape = Shape::Map(Keys::Free, &Shape::Either(&[Shape::Plain, Shape::Object(&SECRET)]));
pub(super) const DEMANDS: Shape = Shape::Map(Keys::Names, &Shape::Count(1, MAX_SLOTS));
pub(super) const TIME: Shape = Shape::Form(&DURATION);

/// Work and its surroundings, wherever something is done.
pub(super) const RUN: Field =
    Field::new("run", ARGV, "Starts a program: a list of it and its arguments, with no shell in between.");
pub(super) const SHELL: Field =
    Field::new("shell", Shape::Text, "Runs a script with `sh`; values reach it through `env` only.");
pub(super) const ASK_SERVER: Field = Field::new("http", Shape::Object(&HTTP), "Asks a server.");
pub(super) const ASK_DATABASE: Field = Field::new("sql", Shape::Object(&SQL), "Asks a database.");
pub(super) const ENVIRONMENT: Field =
    Field::new("env", ENV, "Environment variables of the program; a value may be a secret.")
        .default("few: `PATH`, `HOME`, `LANG`, `TZ`, …")
        .only_with(PROCESSES);
pub(super) const DIRECTORY: Field = Field::new("cwd", Shape::Plain, "The directory of the program.")
    .default("that of the worker")
    .only_with(PROCESSES);

pub static FLOW: Place = Place {
    id: "flow",
    phrase: "a flow",
    fields: &[
        Field::new("flow", Shape::Name, "Its name.").required(),
        Field::new("description", Shape::Text, "A sentence for people."),
        Field::new("inputs", INPUTS, "What a run is given, by name.").default("none"),
        Field::new(
            "tags",
            Shape::Map(Keys::Names, &Shape::Plain),
            "Names and values by which runs are told apart and limited; templates may use `inputs`.",
        )
        .default("none"),
        Field::new("concurrency", Shape::Count(1, MAX_AT_ONCE), "Runs of this flow at once, for each `key`.")
            .default("no limit of its own"),
        Field::new(
            "key",
            Shape::Template,
            "A template over `inputs`: `concurrency` counts for each of its values apart.",
        )
        .default("all runs count together"),
        Field::new(
            "when_busy",
            Shape::Words(|| words(&WHEN_BUSY)),
            "What a new run does when `concurrency` is reached.",
        )
        .default("`queue`"),
        Field::new("parallel_steps", Shape::Count(1, MAX_AT_ONCE), "Steps of one run at once.")
            .default("no limit of its own"),
        Field::new("timeout", TIME, "How long a run may take, counted from its start.").default("for ever"),
        Field::new("fail_fast", Shape::Flag, "A failed step stops all others.")
            .default("`false`: branches that do not depend on it go on"),
        Field::new("steps", Shape::Map(Keys::SomeIdentifiers, &Shape::Object(&STEP)), "The steps, by name.")
            .required(),
        Field::new(
            "outputs",
            Shape::Map(Keys::Free, &Shape::Template),
            "What a run gives back when it has succeeded; templates may use everything.",
        )
        .default("nothing"),
    ],
    one_of: &[],
    needs_one: false,
    later: &["priority"],
    elsewhere: &[],
};

pub static INPUT: Place = Place {
    id: "input",
    phrase: "an input",
    fields: &[
        Field::new("type", Shape::Words(|| words(&INPUT_TYPES)), "What it must be.").default("`any`"),
        Field::new("default", Shape::Any, "What it is if it is not given.").default("null"),
        Field::new("required", Shape::Flag, "It must be given.").default("`false`"),
        Field::new("description", Shape::Text, "A sentence for people."),
    ],
    one_of: &[],
    needs_one: false,
    later: &[],
    elsewhere: &[],
};

pub static STEP: Place = Place {
    id: "step",
    phrase: "a step",
    fields: &[
        RUN,
        SHELL,
        ASK_SERVER,
        ASK_DATABASE,
        Field::new("do", MEMBERS, "Does several things one after the other, on one worker, as one attempt."),
        Field::new(
            "action",
            Shape::Name,
            "Does something that has a name, declared in an `action:` document.",
        ),
        Field::new("flow", Shape::Name, "Runs another flow inside this one."),
        Field::new(
            "wait",
            Shape::Form(&WAIT),
            "Pauses for a duration or until a time; restarts do not matter.",
        ),
        Field::new(
            "after",
            Shape::Either(&[Shape::Text, Shape::List(0, &Shape::Text)]),
            "The steps that must have ended before.",
        )
        .default("it starts at once"),
        Field::new(
            "when",
            Shape::Expression,
            "A condition: if it is false the step is skipped. One that looks at a `state` replaces the rule that all before succeeded.",
        ),
        Field::new(
            "always",
            Shape::Flag,
            "Run whatever became of the steps before, unless the run was cancelled or is out of time.",
        )
        .default("`false`: skipped unless all of them succeeded"),
        Field::new(
            "with_items",
            Shape::Either(&[Shape::Expression, Shape::List(0, &Shape::Template)]),
            "Do it once for each item of a list.",
        )
        .only_with(LOOPED),
        Field::new("concurrency", Shape::Count(1, MAX_AT_ONCE), "Items at once: the window of the loop.")
            .default("bounded by pools and workers alone; of a `flow`, 10"),
        Field::new(
            "on_failure",
            Shape::Either(&[Shape::Words(|| words(&ON_FAILURE_WORDS)), Shape::Object(&ON_FAILURE)]),
            "What a loop does after an item has failed.",
        )
        .default("`stop`"),
        Field::new("repeat", Shape::Object(&REPEAT), "Do it again and again, as one attempt.")
            .default("once")
            .only_with(BUILT_IN),
        ENVIRONMENT,
        DIRECTORY,
        Field::new("inputs", Shape::Map(Keys::Free, &Shape::Template), "What the action or flow is given.")
            .default("none")
            .only_with(&["action", "flow"]),
        Field::new("pools", DEMANDS, "Units of pools that every attempt holds while it runs.")
            .default("none")
            .only_with(CARRIED_OUT),
        Field::new("retry", Shape::Object(&RETRY), "When it is tried again.")
            .default("what its action says, or one attempt")
            .only_with(CARRIED_OUT),
        Field::new("timeout", TIME, "How long one attempt may run; waiting does not count.")
            .default("what its action says, or for ever")
            .only_with(CARRIED_OUT),
        Field::new("start_within", TIME, "How long it may wait for its first start.")
            .default("for ever")
            .only_with(CARRIED_OUT),
        Field::new(
            "max_losses",
            Shape::Count(0, MAX_ATTEMPTS),
            "How often its worker may be lost while it runs.",
        )
        .default("what its action says, or 3")
        .only_with(CARRIED_OUT),
        Field::new("on", Shape::Object(&NEEDS), "Which workers may do it.")
            .default("those of queue `default`")
            .only_with(CARRIED_OUT),
    ],
    one_of: &["run", "shell", "http", "sql", "do", "action", "flow", "wait"],
    needs_one: true,
    later: &["cursor"],
    elsewhere: &[],
};

pub static ON_FAILURE: Place = Place {
    id: "on_failure",
    phrase: "`on_failure`",
    fields: &[Field::new(
        "tolerate",
        Shape::Count(0, MAX_ITEMS),
        "So many failed items do not stop the loop.",
    )
    .required()],
    one_of: &[],
    needs_one: false,
    later: &[],
    elsewhere: &[],
};
