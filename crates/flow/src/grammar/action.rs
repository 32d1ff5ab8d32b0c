//! Actions, and what bounds them: pace, lines, tries, workers.

use super::chain::MEMBERS;
use super::flow::{ASK_DATABASE, ASK_SERVER, DEMANDS, DIRECTORY, ENVIRONMENT, INPUTS, RUN, SHELL, TIME};
use super::words::{BACKOFFS, WHEN_BUSY, WHEN_EXHAUSTED, WHEN_FULL};
use super::{CAUSE, Field, MAX_AT_ONCE, MAX_ATTEMPTS, Place, QUOTIENT, RATIO, Shape, words};

pub(super) const PACE: Shape = Shape::Either(&[Shape::Form(&RATIO), Shape::Object(&RATE)]);
pub(super) const SHARE: Shape = Shape::Either(&[Shape::Form(&QUOTIENT), Shape::Object(&QUOTA)]);

pub static ACTION: Place = Place {
    id: "action",
    phrase: "an action",
    fields: &[
        Field::new("action", Shape::Name, "Its name, like `charge` or `billing.charge`.").required(),
        Field::new("description", Shape::Text, "A sentence for people."),
        Field::new("inputs", INPUTS, "What it is given, by name.").default("none"),
        RUN,
        SHELL,
        ASK_SERVER,
        ASK_DATABASE,
        Field::new("do", MEMBERS, "Does several things one after the other, on one worker, as one attempt."),
        Field::new("worker", Shape::Flag, "A function of that name, which a program registered, does it.")
            .default("`true` if nothing else does it"),
        ENVIRONMENT,
        DIRECTORY,
        Field::new("concurrency", Shape::Count(1, MAX_AT_ONCE), "Attempts at once, for each `key`.")
            .default("what `limits` say"),
        Field::new(
            "key",
            Shape::Template,
            "A template over `inputs`: the limits of the action count for each of its values apart.",
        )
        .default("all count together"),
        Field::new(
            "when_busy",
            Shape::Words(|| words(&WHEN_BUSY)),
            "What a new submission does when `concurrency` is reached.",
        )
        .default("`queue`"),
        Field::new("rate", PACE, "How often it may start.").default("what `limits` say"),
        Field::new("quota", SHARE, "How often it may start in each window of the calendar.")
            .default("what `limits` say"),
        Field::new("line", Shape::Object(&LINE), "Who may wait for it, when it is submitted by itself."),
        Field::new("pools", DEMANDS, "Units of pools that every attempt holds while it runs.")
            .default("none"),
        Field::new("retry", Shape::Object(&RETRY), "When it is tried again, unless a step says otherwise.")
            .default("one attempt"),
        Field::new("timeout", TIME, "How long one attempt may run, unless a step says otherwise.")
            .default("for ever"),
        Field::new(
            "max_losses",
            Shape::Count(0, MAX_ATTEMPTS),
            "How often its worker may be lost while it runs.",
        )
        .default("3"),
        Field::new("on", Shape::Object(&NEEDS), "Which workers may do it.")
            .default("those of queue `default`"),
    ],
    one_of: &["run", "shell", "http", "sql", "do", "worker"],
    needs_one: false,
    later: &[],
    elsewhere: &[],
};

pub static RATE: Place = Place {
    id: "rate",
    phrase: "`rate`",
    fields: &[
        Field::new("limit", Shape::Form(&RATIO), "Starts, spread evenly.").required(),
        Field::new("burst", Shape::Count(1, MAX_AT_ONCE), "So many of them may come at once.").default("1"),
        Field::new(
            "when_busy",
            Shape::Words(|| words(&WHEN_EXHAUSTED)),
            "What happens when they are used up.",
        )
        .default("`wait`"),
    ],
    one_of: &[],
    needs_one: false,
    later: &[],
    elsewhere: &[],
};

pub static QUOTA: Place = Place {
    id: "quota",
    phrase: "`quota`",
    fields: &[
        Field::new("limit", Shape::Form(&QUOTIENT), "Starts in each minute, hour, day, week or month.")
            .required(),
        Field::new("zone", Shape::Text, "The time zone in which days begin, like `Europe/Berlin`.")
            .default("`UTC`"),
        Field::new(
            "when_busy",
            Shape::Words(|| words(&WHEN_EXHAUSTED)),
            "What happens when they are used up.",
        )
        .default("`wait`"),
    ],
    one_of: &[],
    needs_one: false,
    later: &[],
    elsewhere: &[],
};

pub static LINE: Place = Place {
    id: "line",
    phrase: "`line`",
    fields: &[
        Field::new("max_length", Shape::Count(0, u32::MAX), "How many may wait.").default("10000"),
        Field::new("start_within", TIME, "How long one may wait.").default("`1h`"),
        Field::new("when_full", Shape::Words(|| words(&WHEN_FULL)), "What happens when no more may wait.")
            .default("`reject`"),
    ],
    one_of: &[],
    needs_one: false,
    later: &[],
    elsewhere: &[],
};

pub static RETRY: Place = Place {
    id: "retry",
    phrase: "`retry`",
    fields: &[
        Field::new("attempts", Shape::Count(1, MAX_ATTEMPTS), "Tries in all, the first included.").required(),
        Field::new("backoff", Shape::Words(|| words(&BACKOFFS)), "How the pauses grow.")
            .default("`exponential`"),
        Field::new("delay", TIME, "The first pause.").default("`1s`"),
        Field::new("max_delay", TIME, "The longest pause.").default("`5m`, or `delay` if that is longer"),
        Field::new("jitter", Shape::Flag, "Spread the pauses between half and all of what they would be.")
            .default("`false`"),
        Field::new(
            "on",
            Shape::Either(&[Shape::Form(&CAUSE), Shape::List(0, &Shape::Form(&CAUSE))]),
            "The failures that are worth another try: `timeout`, `exit`, `signal`, `status`, `connect`, `sql`, or one of a kind.",
        )
        .default("all"),
    ],
    one_of: &[],
    needs_one: false,
    later: &[],
    elsewhere: &[],
};

pub static NEEDS: Place = Place {
    id: "on",
    phrase: "`on`",
    fields: &[
        Field::new("queue", Shape::Name, "The queue whose workers take it.").default("`default`"),
        Field::new("labels", Shape::List(0, &Shape::Name), "Labels that the worker must have.")
            .default("none"),
    ],
    one_of: &[],
    needs_one: false,
    later: &[],
    elsewhere: &[],
};
