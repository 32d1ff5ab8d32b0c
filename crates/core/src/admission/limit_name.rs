//! The names of limits as people write them: reads what `Display` of a [`LimitKey`] writes.
//!
//! Slots of workers have no such name: nobody sets them, workers bring them.

use super::LimitKey;
use crate::ids::{Name, NodeId};
use crate::suggest::nearest;
use std::str::FromStr;
use thiserror::Error;

/// Kinds that take a name; the limit on all runs is just `runs`.
const KINDS: [&str; 9] = ["tag", "flow", "run", "window", "action", "total", "pool", "quota", "rate"];
const RUNS: &str = "runs";

/// Why a text names no limit.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum BadLimitName {
    #[error("there is no kind of limit `{kind}`{}", suggestion(meant))]
    UnknownKind { kind: String, meant: Option<String> },
    #[error("`{0}` says which kind of limit, but not which one: write `{0}:NAME`")]
    NoName(String),
    #[error("`runs` is one limit and has no name: leave `:{0}` out")]
    Nameless(String),
    #[error("a limit on runs with a tag is written `tag:NAME=VALUE`, not `tag:{0}`")]
    NotATag(String),
    #[error("`{0}` is not the number of a run or step")]
    NotANumber(String),
}

fn suggestion(meant: &Option<String>) -> String {
    meant.as_ref().map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default()
}

impl FromStr for LimitKey {
    type Err = BadLimitName;

    fn from_str(text: &str) -> Result<LimitKey, BadLimitName> {
        if text == RUNS {
            return Ok(LimitKey::Runs);
        }
        let (kind, name) = text.split_once(':').unwrap_or((text, ""));
        match name {
            "" if KINDS.contains(&kind) => Err(BadLimitName::NoName(kind.to_owned())),
            name => named(kind, name),
        }
    }
}

fn named(kind: &str, name: &str) -> Result<LimitKey, BadLimitName> {
    let number = || name.parse().map(NodeId).map_err(|_| BadLimitName::NotANumber(name.to_owned()));
    // A key may be any text, a name has no slash.
    let (of, key) = match name.split_once('/') {
        Some((of, key)) => (Name::new(of), Some(Name::new(key))),
        None => (Name::new(name), None),
    };
    Ok(match (kind, key) {
        ("tag", _) => match name.split_once('=') {
            Some((tag, value)) if !tag.is_empty() => LimitKey::Tag { tag: tag.into(), value: value.into() },
            _ => return Err(BadLimitName::NotATag(name.to_owned())),
        },
        ("flow", key) => LimitKey::Flow { flow: of, key },
        ("run", _) => LimitKey::Steps(number()?),
        ("window", _) => LimitKey::Window(number()?),
        ("action", Some(key)) => LimitKey::ActionKey { action: of, key },
        ("action", None) => LimitKey::Action(of),
        ("total", _) => LimitKey::Total(Name::new(name)),
        ("pool", _) => LimitKey::Pool(Name::new(name)),
        ("quota", key) => LimitKey::Quota { of, key },
        ("rate", key) => LimitKey::Rate { of, key },
        _ if kind == RUNS => return Err(BadLimitName::Nameless(name.to_owned())),
        _ => {
            let meant = nearest(kind, KINDS.into_iter().chain([RUNS]));
            return Err(BadLimitName::UnknownKind { kind: kind.to_owned(), meant });
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn name() -> impl Strategy<Value = Name> {
        "[a-z][a-z0-9._-]{0,8}".prop_map(Name::from)
    }

    fn text() -> impl Strategy<Value = Name> {
        ".{1,8}".prop_map(Name::from)
    }

    fn key() -> impl Strategy<Value = LimitKey> {
        let maybe = || prop::option::of(text());
        prop_oneof![
            Just(LimitKey::Runs),
            (name(), text()).prop_map(|(tag, value)| LimitKey::Tag { tag, value }),
            (name(), maybe()).prop_map(|(flow, key)| LimitKey::Flow { flow, key }),
            any::<u64>().prop_map(|run| LimitKey::Steps(NodeId(run))),
            any::<u64>().prop_map(|step| LimitKey::Window(NodeId(step))),
            (name(), text()).prop_map(|(action, key)| LimitKey::ActionKey { action, key }),
            name().prop_map(LimitKey::Action),
            "[a-z.]{0,8}\\*?"
                .prop_filter("a pattern", |text| !text.is_empty())
                .prop_map(|text| { LimitKey::Total(Name::from(text)) }),
            name().prop_map(LimitKey::Pool),
            (name(), maybe()).prop_map(|(of, key)| LimitKey::Quota { of, key }),
            (name(), maybe()).prop_map(|(of, key)| LimitKey::Rate { of, key }),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_is_written_reads_back(key in key()) {
            prop_assert_eq!(key.to_string().parse(), Ok(key));
        }

        #[test]
        fn any_text_is_read_or_refused(text in ".{0,20}") {
            if let Ok(key) = text.parse::<LimitKey>() {
                prop_assert_eq!(key.to_string().parse(), Ok(key));
            }
        }
    }

    #[test]
    fn a_slip_is_answered_with_what_was_meant() {
        let cases = [
            ("pol:gpu", "there is no kind of limit `pol`; did you mean `pool`?"),
            ("actions:mail", "there is no kind of limit `actions`; did you mean `action`?"),
            ("runs:3", "`runs` is one limit and has no name: leave `:3` out"),
            ("rnus", "there is no kind of limit `rnus`; did you mean `runs`?"),
            ("pool", "`pool` says which kind of limit, but not which one: write `pool:NAME`"),
            ("tag:acme", "a limit on runs with a tag is written `tag:NAME=VALUE`, not `tag:acme`"),
            ("window:all", "`all` is not the number of a run or step"),
            ("workers:default", "there is no kind of limit `workers`"),
        ];
        for (text, says) in cases {
            assert_eq!(text.parse::<LimitKey>().map_err(|error| error.to_string()), Err(says.to_owned()));
        }
    }
}
