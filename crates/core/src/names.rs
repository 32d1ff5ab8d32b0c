//! How long names may be, and that there are some. Stores keep indexes of them, and what an index cannot hold must never
//! be committed: the tables could not follow the journal any more.

use crate::admission::LimitKey;
use crate::ids::{LONGEST_NAME, Name};
use crate::protocol::{Declare, Pausable, Refusal, Submission, Submit, TokenRow};

/// As much of a name that is too long as is shown.
const SHOWN: usize = 40;
/// The most that JSON makes of one byte.
const WIDEST: usize = 6;

/// The first one that is too long is refused.
fn check<'a>(names: impl IntoIterator<Item = &'a Name>) -> Result<(), Refusal> {
    match names.into_iter().find(|name| is_too_long(name.as_str())) {
        Some(name) => Err(Refusal::NameTooLong(name.as_str().chars().take(SHOWN).collect())),
        None => Ok(()),
    }
}

/// The same for what people refer to: they cannot refer to nothing. What templates make for each task may be empty.
fn check_given<'a>(names: impl IntoIterator<Item = &'a Name>) -> Result<(), Refusal> {
    names.into_iter().try_for_each(|name| match name.as_str() {
        "" => Err(Refusal::NoName),
        _ => check([name]),
    })
}

fn is_too_long(name: &str) -> bool {
    name.len() * WIDEST > LONGEST_NAME && name.chars().map(width).sum::<usize>() > LONGEST_NAME
}

fn width(letter: char) -> usize {
    match letter {
        '"' | '\\' => 2,
        letter if letter.is_ascii_control() => WIDEST,
        letter => letter.len_utf8(),
    }
}

pub(crate) fn of_token(token: &TokenRow) -> Result<(), Refusal> {
    check_given([&token.id, &token.name, &token.by].into_iter().chain(&token.scopes))
}

pub(crate) fn of_submission(submit: &Submit) -> Result<(), Refusal> {
    let (name, key) = match &submit.what {
        Submission::Job { action, key, .. } => (action, key),
        Submission::Run { flow, key, .. } => (flow, key),
    };
    let tags = submit.tags.iter().map(|(tag, _)| tag);
    check_given([name].into_iter().chain(submit.idempotency.as_ref().map(|known| &known.key)).chain(tags))?;
    check(key.iter().chain(submit.tags.iter().map(|(_, value)| value)))
}

pub(crate) fn of_declaration(declare: &Declare) -> Result<(), Refusal> {
    for flow in &declare.flows {
        let steps = flow.steps.iter().flat_map(|step| [&step.name].into_iter().chain(named(&step.pools)));
        check_given([&flow.name].into_iter().chain(steps))?;
    }
    for action in &declare.actions {
        check_given([&action.policy.action].into_iter().chain(named(&action.policy.pools)))?;
    }
    let Some(limits) = &declare.limits else { return Ok(()) };
    let tags = limits.tags.iter().flat_map(|limit| [&limit.tag].into_iter().chain(&limit.value));
    let patterns = limits.actions.iter().map(|rule| &rule.pattern);
    check_given(tags.chain(patterns).chain(limits.pools.iter().map(|pool| &pool.name)))
}

fn named(pools: &[(Name, u32)]) -> impl Iterator<Item = &Name> {
    pools.iter().map(|(pool, _)| pool)
}

pub(crate) fn of_limit(key: &LimitKey) -> Result<(), Refusal> {
    match key {
        LimitKey::Tag { tag: one, value: other } | LimitKey::ActionKey { action: one, key: other } => {
            check([one, other])
        }
        LimitKey::Flow { flow: of, key } | LimitKey::Quota { of, key } | LimitKey::Rate { of, key } => {
            check([of].into_iter().chain(key))
        }
        LimitKey::Action(name) | LimitKey::Total(name) | LimitKey::Pool(name) => check([name]),
        LimitKey::Runs | LimitKey::Steps(_) | LimitKey::Window(_) | LimitKey::Slot(_) => Ok(()),
    }
}

pub(crate) fn of_pause(what: &Pausable) -> Result<(), Refusal> {
    match what {
        Pausable::Limit(key) => of_limit(key),
        Pausable::Action(action) => check([action]),
        Pausable::Node(_) => Ok(()),
    }
}

pub(crate) fn of_worker(name: &Name) -> Result<(), Refusal> {
    check_given([name])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::{Skills, SlotCounts};
    use crate::protocol::{Answer, Command, Join, SetLimit};
    use crate::testkit::{Kit, action, flow, job, limits, step};

    fn long() -> Name {
        Name::from("x".repeat(LONGEST_NAME + 1))
    }

    #[test]
    fn what_counts_is_what_json_makes_of_it() {
        for (name, most) in [("x", 256), ("ü", 128), ("\"", 128), ("\0", 42)] {
            assert!(!is_too_long(&name.repeat(most)), "{name:?}");
            assert!(is_too_long(&name.repeat(most + 1)), "{name:?}");
        }
    }

    #[test]
    fn whatever_names_something_is_refused_if_it_is_too_long() {
        let mut kit = Kit::new(1);
        let key = LimitKey::Action(long());
        let set = SetLimit { key: key.clone(), value: None, by: "me".into(), until: None };
        let with_tag = Submit { tags: vec![("tag".into(), long())], ..kit.submit(job("work")) };
        let with_key = kit.submit(job("work")).under(long());
        let actions = vec![action(long().as_str(), None, &[])];
        let flows = vec![flow(long().as_str(), vec![step("a")])];
        let pools = Some(limits(&[(long().as_str(), 1)]));
        let commands = [
            Command::Submit(kit.submit(job(long().as_str()))),
            Command::Submit(with_tag),
            Command::Submit(with_key),
            Command::Declare(Declare { actions, ..Declare::default() }),
            Command::Declare(Declare { flows, ..Declare::default() }),
            Command::Declare(Declare { limits: pools, ..Declare::default() }),
            Command::SetLimit(set),
            Command::Pause(Pausable::Limit(key)),
            Command::Resume(Pausable::Action(long())),
        ];
        for command in commands {
            let refused = kit.refused(command);
            assert_eq!(refused, Refusal::NameTooLong("x".repeat(SHOWN)), "{refused}");
        }
    }

    #[test]
    fn what_people_refer_to_has_a_name() {
        let mut kit = Kit::new(1);
        let with_tag = Submit { tags: vec![("".into(), "value".into())], ..kit.submit(job("work")) };
        let with_key = kit.submit(job("work")).under("");
        let actions = vec![action("", None, &[])];
        let (skills, slots) = (Skills::plain(), SlotCounts::default());
        let join = Join { worker: "".into(), incarnation: 1, skills, slots };
        let commands = [
            Command::Submit(kit.submit(job(""))),
            Command::Submit(with_tag),
            Command::Submit(with_key),
            Command::Declare(Declare { actions, ..Declare::default() }),
            Command::Join(join),
        ];
        for command in commands {
            assert_eq!(kit.refused(command), Refusal::NoName);
        }
        let of_nothing = Submit { tags: vec![("tag".into(), "".into())], ..kit.submit(job("work")) };
        assert!(matches!(kit.apply(Command::Submit(of_nothing)), Answer::Accepted { .. }));
    }
}
