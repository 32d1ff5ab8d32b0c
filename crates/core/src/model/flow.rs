//! Flows and their steps.

use super::{FLOWS_AT_ONCE, Origin, Requirement, WhenBusy};
use crate::ids::Name;
use crate::time::Span;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// JSON text whose strings may hold template expressions. The core never looks inside.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Template(pub Arc<str>);

/// One version of a flow. Steps are in the order of the file; `after` has no cycle.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Flow {
    pub name: Name,
    pub description: Option<String>,
    pub inputs: Vec<Input>,
    /// Values may be templates over `inputs`; they are rendered before a run is submitted.
    pub tags: Vec<(Name, Template)>,
    /// Runs of this flow at once, per `key`.
    pub concurrency: Option<u32>,
    pub key: Option<Template>,
    pub when_busy: WhenBusy,
    pub parallel_steps: Option<u32>,
    pub timeout: Option<Span>,
    /// A failed step cancels the branches that do not depend on it.
    pub fail_fast: bool,
    pub steps: Vec<Step>,
    /// A JSON object of templates, rendered when the run has ended well.
    pub outputs: Option<Template>,
    /// Where the flow stands, for messages: `quickstart.yaml`.
    pub file: Name,
    /// The line on which `concurrency` or, without it, the flow stands.
    pub line: u32,
    /// The line on which `parallel_steps` stands.
    #[serde(default)]
    pub parallel_line: Option<u32>,
}

impl Flow {
    /// Where the bound on its runs stands.
    pub fn origin(&self) -> Origin {
        Origin { file: Some(self.file.clone()), line: self.line }
    }

    /// Where the bound on the steps of a run stands.
    pub fn parallel_origin(&self) -> Origin {
        self.origin().on(self.parallel_line)
    }

    /// Where the window of a loop stands.
    pub fn window_origin(&self, step: &Step) -> Origin {
        let window = step.each.as_ref().and_then(|each| each.window_line);
        self.origin().on(window.or(Some(step.line)))
    }
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Input {
    pub name: Name,
    pub kind: InputType,
    pub required: bool,
    /// JSON text.
    pub default: Option<Arc<str>>,
    pub description: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum InputType {
    String,
    Integer,
    Number,
    Boolean,
    List,
    Object,
    Any,
}

impl InputType {
    pub const ALL: [InputType; 7] = [
        InputType::String,
        InputType::Integer,
        InputType::Number,
        InputType::Boolean,
        InputType::List,
        InputType::Object,
        InputType::Any,
    ];

    /// As files and the API call it.
    pub const fn as_str(self) -> &'static str {
        match self {
            InputType::String => "string",
            InputType::Integer => "integer",
            InputType::Number => "number",
            InputType::Boolean => "boolean",
            InputType::List => "list",
            InputType::Object => "object",
            InputType::Any => "any",
        }
    }

    pub fn parse(text: &str) -> Option<InputType> {
        InputType::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Step {
    pub name: Name,
    /// Indexes of the steps that must have ended.
    pub after: Vec<u32>,
    pub rule: Rule,
    pub work: Work,
    pub each: Option<Loop>,
    /// Pools claimed by every attempt, with units; sorted by name.
    pub pools: Vec<(Name, u32)>,
    pub needs: Requirement,
    /// What the step does not say about its attempts is said by its action, if it has one.
    pub retry: Option<Retry>,
    pub max_losses: Option<u32>,
    /// Bounds the running time of one attempt.
    pub timeout: Option<Span>,
    /// Bounds the time from being ready to the first start.
    pub start_within: Option<Span>,
    /// The step's line in its file.
    pub line: u32,
}

impl Step {
    /// Tries in all, as far as the step says.
    pub fn attempts(&self) -> u32 {
        self.retry.as_ref().map_or(1, |retry| retry.attempts)
    }

    /// Items of its loop at once; nothing if it has none, or if pools and workers alone bound them.
    pub fn window(&self) -> Option<u32> {
        let window = self.each.as_ref()?.window;
        window.or(matches!(self.work, Work::Flow { .. }).then_some(FLOWS_AT_ONCE))
    }
}

/// When a step whose predecessors have all ended runs, and when it is skipped.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Rule {
    /// All predecessors succeeded, and the condition (if any) is true.
    Success { when: Option<Template> },
    /// The condition looks at states of steps and therefore replaces the success rule.
    States { when: Template },
    /// Whatever happened before, if the condition (if any) is true.
    Always { when: Option<Template> },
}

impl Rule {
    pub fn when(&self) -> Option<&Template> {
        match self {
            Rule::Success { when } | Rule::Always { when } => when.as_ref(),
            Rule::States { when } => Some(when),
        }
    }
}

/// What a step (or each item of its loop) does.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Work {
    /// What a worker carries out; the template is a JSON object with one member, named like the runner: `{"run": {…}}`. Stores may hold
    /// an earlier form, in which it was what stands inside.
    #[serde(alias = "Run")]
    Order(Template),
    /// A named action; the template is a JSON object of its inputs.
    Action { action: Name, inputs: Template },
    /// A sub-flow; the template is a JSON object of its inputs.
    Flow { flow: Name, inputs: Template },
    /// A durable pause; the template renders to a number of seconds or a time.
    Wait(Template),
}

impl Work {
    pub fn template(&self) -> &Template {
        match self {
            Work::Order(template) | Work::Wait(template) => template,
            Work::Action { inputs, .. } | Work::Flow { inputs, .. } => inputs,
        }
    }
}

/// A window over a list.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Loop {
    /// Renders to a JSON list.
    pub items: Template,
    /// Items in flight at once, as far as it is said: see [`Step::window`].
    pub window: Option<u32>,
    pub on_failure: OnFailure,
    /// The line on which the window stands.
    #[serde(default)]
    pub window_line: Option<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum OnFailure {
    /// Stop at failure number `n + 1`: no further item starts, running ones are cancelled.
    Tolerate(u32),
    /// Run every item, whatever happens; the step then succeeds.
    Continue,
}

impl OnFailure {
    pub const STOP: OnFailure = OnFailure::Tolerate(0);
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Retry {
    /// Tries in all, the first included.
    pub attempts: u32,
    pub backoff: Backoff,
    pub delay: Span,
    pub max_delay: Span,
    /// Pauses are spread between half and all of what they would be, so that those who failed together do not come
    /// back together.
    #[serde(default)]
    pub jitter: bool,
    /// Only failures with one of these causes are tried again; all, if there are none.
    #[serde(default)]
    pub on: Vec<Cause>,
}

/// Why something failed, or which reasons are meant: `timeout`, `exit:75`, `status:503`. A reason that ends before the
/// colon means all of its kind, and an `x` any digit: `status`, `status:5xx`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cause(pub Name);

impl Cause {
    pub const TIMEOUT: &str = "timeout";
    /// A server could not be reached, or the connection to it broke.
    pub const CONNECT: &str = "connect";

    /// What a database says about a statement, by its code: `40001`.
    pub fn sql(code: impl std::fmt::Display) -> Cause {
        Cause(Name::from(format!("sql:{code}")))
    }

    /// A server's answer, or all that are alike: `503`, `5xx`.
    pub fn status(status: impl std::fmt::Display) -> Cause {
        Cause(Name::from(format!("status:{status}")))
    }

    /// Whether `cause` is one of those that this one means.
    pub fn means(&self, cause: &Cause) -> bool {
        let (mine, theirs) = (self.0.as_str(), cause.0.as_str());
        let (kind, wanted) = mine.split_once(':').map_or((mine, None), |(kind, wanted)| (kind, Some(wanted)));
        let (other, found) = theirs.split_once(':').unwrap_or((theirs, ""));
        let alike = |(wanted, found): (u8, u8)| wanted == found || (wanted == b'x' && found.is_ascii_digit());
        kind == other
            && wanted.is_none_or(|wanted| {
                wanted.len() == found.len() && wanted.bytes().zip(found.bytes()).all(alike)
            })
    }
}

/// What holds where nobody said anything.
pub static ONCE: Retry = Retry::ONCE;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Backoff {
    Constant,
    Linear,
    Exponential,
}

impl Retry {
    pub const ONCE: Retry = Retry {
        attempts: 1,
        backoff: Backoff::Exponential,
        delay: Span::seconds(1),
        max_delay: Span::minutes(5),
        jitter: false,
        on: Vec::new(),
    };

    /// Whether a failure with this cause, which nobody may know, is tried again.
    pub fn is_for(&self, cause: Option<&Cause>) -> bool {
        self.on.is_empty() || cause.is_some_and(|cause| self.on.iter().any(|wanted| wanted.means(cause)))
    }

    /// How long to wait after `failures` failed tries (at least one). `chance` is any number that differs between tasks.
    pub fn pause(&self, failures: u32, chance: u64) -> Span {
        let whole = self.backed_off(failures);
        match self.jitter {
            true => Span(whole.0 - ((u128::from(whole.0 / 2) * u128::from(chance)) >> 64) as u64),
            false => whole,
        }
    }

    fn backed_off(&self, failures: u32) -> Span {
        let failures = u64::from(failures.max(1));
        let span = match self.backoff {
            Backoff::Constant => self.delay,
            Backoff::Linear => self.delay.times(failures),
            Backoff::Exponential => {
                self.delay.times(1u64.checked_shl(failures as u32 - 1).unwrap_or(u64::MAX))
            }
        };
        span.min(self.max_delay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_as_told_and_stop_at_the_maximum() {
        let retry =
            |backoff| Retry { backoff, delay: Span::millis(200), max_delay: Span::seconds(1), ..Retry::ONCE };
        let pauses = |backoff| (1..=5).map(|n| retry(backoff).pause(n, 7).0 / 1000).collect::<Vec<_>>();
        assert_eq!(pauses(Backoff::Constant), [200, 200, 200, 200, 200]);
        assert_eq!(pauses(Backoff::Linear), [200, 400, 600, 800, 1000]);
        assert_eq!(pauses(Backoff::Exponential), [200, 400, 800, 1000, 1000]);
        assert_eq!(retry(Backoff::Exponential).pause(500, 7), Span::seconds(1), "no overflow");
        assert_eq!(retry(Backoff::Linear).pause(0, 7), Span::millis(200));
    }

    #[test]
    fn spread_pauses_lie_between_half_and_all() {
        let retry = Retry { jitter: true, delay: Span::seconds(8), ..Retry::ONCE };
        assert_eq!(retry.pause(1, 0), Span::seconds(8));
        assert_eq!(retry.pause(1, 1 << 63), Span::seconds(6));
        assert!(retry.pause(1, u64::MAX) >= Span::seconds(4));
    }

    #[test]
    fn causes_are_meant_one_by_one_or_together() {
        let retry = |on: &[&str]| Retry {
            on: on.iter().map(|cause| Cause((*cause).into())).collect(),
            ..Retry::ONCE
        };
        let cause = |cause: &str| Some(Cause(cause.into()));
        let cases = [
            (&["status:5xx", "connect"][..], "status:503", true),
            (&["status:5xx"], "status:429", false),
            (&["status"], "status:429", true),
            (&["exit:75"], "exit:7", false),
            (&["exit:75"], "exit:75", true),
            (&["timeout"], "timeout", true),
            (&["sql:40001"], "sql:40001", true),
            (&["sql:40xxx"], "sql:40P01", false),
            (&["stat"], "status:503", false),
            (&[], "anything", true),
        ];
        for (on, failed, expected) in cases {
            assert_eq!(retry(on).is_for(cause(failed).as_ref()), expected, "{on:?} {failed}");
        }
        assert!(retry(&[]).is_for(None) && !retry(&["exit"]).is_for(None));
    }
}
