//! An explanation as sentences: the one wording that command line, API and pages share.

use super::{Blocker, Explanation, Holder, Reason, StepInside, Why};
use crate::admission::LimitKey;
use crate::model::OWN_TAGS;
use crate::protocol::LimitValue;
use crate::state::State;
use crate::time::{Moment, Span};
use std::fmt::{self, Write};

/// Holders named one by one; the rest are counted.
const HOLDERS_SHOWN: usize = 4;

/// The explanation as text, without a final line break.
pub fn render(explanation: &Explanation) -> String {
    let mut out = headline(explanation);
    if let Reason::Inside(steps) = &explanation.reason {
        for StepInside { name, waits } in steps {
            let _ = write!(out, "\n  {name:<18} {}", waits.as_deref().unwrap_or("runs"));
        }
    }
    for blocker in &explanation.blockers {
        out.push_str(&blocker_lines(blocker, explanation.now));
    }
    if explanation.state == State::Waiting && !explanation.blockers.is_empty() {
        out.push('\n');
        out.push_str(&expectation(explanation));
    }
    out
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&render(self))
    }
}

/// What it waits for, in a few words; nothing if it runs.
pub fn brief(explanation: &Explanation) -> Option<String> {
    Some(match &explanation.reason {
        Reason::Blocked => match explanation.blockers.first() {
            Some(blocker) => {
                let refusal = refusal(blocker, explanation.now);
                format!("waits for {} ({refusal})", describe(&blocker.limit))
            }
            None => "waits for its turn".to_owned(),
        },
        Reason::InLine { ahead: 0 } => "waits for its turn".to_owned(),
        Reason::InLine { ahead } => format!("waits for its turn ({ahead} of its kind before it)"),
        Reason::Paused => "is paused".to_owned(),
        Reason::Scheduled { until } => format!("starts in {}", until.since(explanation.now)),
        Reason::After(steps) => {
            let names: Vec<&str> = steps.iter().map(|step| step.as_str()).collect();
            format!("waits for {} to end", list(&names))
        }
        Reason::Evaluating => "is about to ask".to_owned(),
        Reason::Running { .. } | Reason::Items { .. } | Reason::Inside(_) => return None,
    })
}

fn headline(explanation: &Explanation) -> String {
    let Explanation { name, now, since, .. } = explanation;
    let span = now.since(*since);
    let what = match &explanation.reason {
        Reason::Blocked => format!("has been waiting {span}"),
        Reason::InLine { ahead: 0 } => {
            format!("has been waiting {span}; nothing refuses it, it is about to start")
        }
        Reason::InLine { ahead } => format!("has been waiting {span}; {ahead} of its kind are before it"),
        Reason::Paused if explanation.state == State::Running => {
            format!("has been running {span}; it is paused, nothing more of it starts")
        }
        Reason::Paused => format!("has been waiting {span}; it is paused"),
        Reason::Scheduled { until } => format!("starts in {}", until.since(*now)),
        Reason::After(steps) => {
            let names: Vec<&str> = steps.iter().map(|step| step.as_str()).collect();
            format!("waits for {} to end", list(&names))
        }
        Reason::Evaluating => "is about to ask: its inputs are being worked out".to_owned(),
        Reason::Running { worker, lease_left, stopping } => {
            let mut text = format!("has been running {span}");
            if let Some(worker) = worker {
                let _ = write!(text, " on worker {worker}");
            }
            if let Some(left) = lease_left {
                let _ = write!(text, ", lease {left} left");
            }
            if *stopping {
                text.push_str("; it was told to stop");
            }
            text
        }
        Reason::Items { count, ended, running } => {
            format!("has been running {span}: {ended} of {count} items done, {running} running")
        }
        Reason::Inside(_) => format!("has been running {span}: a flow runs inside it"),
    };
    let mut line = format!("{name} {what}");
    let of_people = explanation.tags.iter().filter(|(tag, _)| !tag.as_str().starts_with(OWN_TAGS));
    let tags: Vec<String> = of_people.map(|(tag, value)| format!("{tag}={value}")).collect();
    if explanation.state == State::Waiting {
        let _ = write!(line, "  (priority {}", explanation.priority);
        if !tags.is_empty() {
            let _ = write!(line, ", {}", tags.join(", "));
        }
        line.push(')');
    }
    line
}

fn blocker_lines(blocker: &Blocker, now: Moment) -> String {
    let mut out = format!("\n  {:<18} {}", describe(&blocker.limit), refusal(blocker, now));
    if blocker.ahead > 0 {
        let _ = write!(out, ", {} in line", ordinal(blocker.ahead + 1));
    }
    if blocker.above > 0 {
        let _ = write!(out, ", {} of a higher priority before it", blocker.above);
    }
    if blocker.waited > Span::ZERO {
        let _ = write!(out, ", waited {} for it", blocker.waited);
    }
    if !blocker.holders.is_empty() {
        let shown: Vec<String> =
            blocker.holders.iter().take(HOLDERS_SHOWN).map(|holder| held(holder, now)).collect();
        let _ = write!(out, "\n      held by {}", shown.join(", "));
        if blocker.holders.len() > HOLDERS_SHOWN {
            let _ = write!(out, " and {} more", blocker.holders.len() - HOLDERS_SHOWN);
        }
    }
    if let Some(line) = origin(blocker, now) {
        let _ = write!(out, "\n      {line}");
    }
    out
}

/// The limit as people call it.
pub fn describe(limit: &LimitKey) -> String {
    match limit {
        LimitKey::Runs => "runs at once".to_owned(),
        LimitKey::Tag { tag, value } => format!("runs with {tag}={value}"),
        LimitKey::Flow { flow, key: None } => format!("runs of {flow}"),
        LimitKey::Flow { flow, key: Some(key) } => format!("runs of {flow} for {key}"),
        LimitKey::Steps(_) => "steps of the run".to_owned(),
        LimitKey::Window(_) => "window of the loop".to_owned(),
        LimitKey::ActionKey { action, key } => format!("action {action} for {key}"),
        LimitKey::Action(action) => format!("action {action}"),
        LimitKey::Total(pattern) => format!("total of {pattern}"),
        LimitKey::Pool(pool) => format!("pool {pool}"),
        LimitKey::Quota { of, .. } => format!("quota of {of}"),
        LimitKey::Rate { of, .. } => format!("rate of {of}"),
        LimitKey::Slot(_) => "workers".to_owned(),
    }
}

fn refusal(blocker: &Blocker, now: Moment) -> String {
    let units = blocker.units;
    match &blocker.why {
        Why::Full { capacity, used, set_aside } => {
            let free = capacity.saturating_sub(used + set_aside);
            let aside = if *set_aside > 0 { format!(", {set_aside} set aside") } else { String::new() };
            if units == 1 && free == 0 {
                format!("{used} of {capacity} in use{aside}")
            } else {
                format!("needs {units}, {free} of {capacity} free{aside}")
            }
        }
        Why::Paused => "paused".to_owned(),
        Why::TooSmall { capacity: 0 } => "closed".to_owned(),
        Why::TooSmall { capacity } => format!("needs {units}, was lowered to {capacity}"),
        Why::Pace { next } => format!("used up, more in {}", next.since(now)),
        Why::NoWorker => match &blocker.limit {
            LimitKey::Slot(need) if !need.labels.is_empty() => {
                let labels: Vec<&str> = need.labels.iter().map(|label| label.as_str()).collect();
                format!("no connected worker of queue {} has label {}", need.queue, list(&labels))
            }
            LimitKey::Slot(need) => format!("no connected worker of queue {} can run it", need.queue),
            _ => "no worker fits".to_owned(),
        },
        Why::SlotsTaken { slots } => format!("all {slots} fitting slots are taken"),
    }
}

fn held(holder: &Holder, now: Moment) -> String {
    let mut text = holder.name.clone();
    if holder.units > 1 {
        let _ = write!(text, " ×{}", holder.units);
    }
    let _ = write!(text, " (for {}", now.since(holder.since));
    if let Some(worker) = &holder.worker {
        let _ = write!(text, ", worker {worker}");
    }
    if let Some(left) = holder.lease_left {
        let _ = write!(text, ", lease {left} left");
    }
    if holder.waits {
        text.push_str(", which itself waits");
    }
    text.push(')');
    text
}

/// Where the value in force comes from.
fn origin(blocker: &Blocker, now: Moment) -> Option<String> {
    let place = blocker.origin.file.is_some().then(|| blocker.origin.to_string());
    let Some(set) = &blocker.set else { return place.map(|place| format!("declared at {place}")) };
    let value = match &set.value {
        LimitValue::Units(units) => units.to_string(),
        LimitValue::Rate(rate) => format!("{} per {}", rate.limit, rate.per),
        LimitValue::Quota(quota) => quota.limit.to_string(),
    };
    let mut text = format!("{value} set by {} {} ago", set.by, now.since(set.at));
    if let Some(until) = set.until {
        let _ = write!(text, ", for another {}", until.since(now));
    }
    if let (Some(place), Some(declared)) = (place, blocker.declared) {
        let _ = write!(text, " ({place} says {declared})");
    }
    Some(text)
}

fn expectation(explanation: &Explanation) -> String {
    let mut text = match explanation.estimate {
        Some(estimate) if estimate.likely == estimate.unlikely => {
            format!("expected to start in about {}", estimate.likely)
        }
        Some(estimate) => {
            format!("expected to start in about {} (p90 {})", estimate.likely, estimate.unlikely)
        }
        None => "when it will start is unknown".to_owned(),
    };
    let first = explanation
        .blockers
        .iter()
        .flat_map(|blocker| blocker.holders.first())
        .min_by_key(|holder| holder.since);
    if let Some(first) = first {
        let _ = write!(text, "; running longest: {}", first.name);
    }
    text
}

fn list(names: &[&str]) -> String {
    match names {
        [] => "nothing".to_owned(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

fn ordinal(n: u64) -> String {
    let suffix = match (n % 10, n % 100) {
        (1, rest) if rest != 11 => "st",
        (2, rest) if rest != 12 => "nd",
        (3, rest) if rest != 13 => "rd",
        _ => "th",
    };
    format!("{n}{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinals_and_lists_read_well() {
        let ordinals: Vec<String> = [1, 2, 3, 4, 11, 12, 13, 21, 102, 113].into_iter().map(ordinal).collect();
        assert_eq!(ordinals, ["1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "102nd", "113th"]);
        assert_eq!(list(&[]), "nothing");
        assert_eq!(list(&["a"]), "a");
        assert_eq!(list(&["a", "b", "c"]), "a, b and c");
    }
}
