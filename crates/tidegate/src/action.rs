//! Actions of this program: an async function under a name, and the limits that travel with it.

use crate::registry::Registry;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Display;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::ids::Name;
use tidegate_core::model::{
    Action, ActionPolicy, Backoff, Origin, QuotaPolicy, QuotaWindow, RatePolicy, Template, WhenBusy,
    WhenExhausted, WhenFull,
};
use tidegate_core::protocol::{Outcome, Payload};
use tidegate_worker::Ctx;

/// An action that is being described. Every call counts at once; there is nothing to finish.
///
/// See [`Tidegate::action`](crate::Tidegate::action).
pub struct ActionBuilder<'a> {
    registry: &'a Registry,
    name: Name,
}

impl<'a> ActionBuilder<'a> {
    pub(crate) fn register<F, I, O, E, R>(registry: &'a Registry, name: Name, function: F) -> Self
    where
        F: Fn(Ctx, I) -> R + Send + Sync + 'static,
        I: DeserializeOwned + Send + 'static,
        O: Serialize,
        E: Display,
        R: Future<Output = Result<O, E>> + Send + 'static,
    {
        let function = Arc::new(function);
        registry.change(|definitions| {
            let policy = ActionPolicy { keyed: false, ..ActionPolicy::silent(name.clone()) };
            definitions.actions.insert(name.clone(), Arc::new(Action::function(policy)));
            definitions.functions.register(name.clone(), move |ctx, input: Payload| {
                let function = function.clone();
                async move { call(&*function, ctx, &input).await }
            });
        });
        ActionBuilder { registry, name }
    }

    fn change(self, change: impl FnOnce(&mut Action)) -> Self {
        self.registry.change(|definitions| {
            if let Some(action) = definitions.actions.get_mut(&self.name) {
                change(Arc::make_mut(action));
            }
        });
        self
    }

    fn policy(self, change: impl FnOnce(&mut ActionPolicy)) -> Self {
        self.change(|action| change(&mut action.policy))
    }

    /// So many at once, of each [`key`](ActionBuilder::key) if there is one. An explanation names the line of this
    /// call.
    #[track_caller]
    pub fn concurrency(self, most: u32) -> Self {
        let origin = origin(Location::caller());
        self.policy(|policy| (policy.each.concurrency, policy.origin) = (Some(most), origin))
    }

    /// So many starts in each span of this length, spread evenly.
    pub fn rate(self, limit: u32, per: Duration) -> Self {
        let rate = RatePolicy { limit, per: per.into(), burst: 1, when_busy: WhenExhausted::Wait };
        self.policy(|policy| policy.each.rate = Some(rate))
    }

    /// So many of the [`rate`](ActionBuilder::rate) may come at once.
    pub fn burst(self, burst: u32) -> Self {
        self.policy(|policy| {
            if let Some(rate) = &mut policy.each.rate {
                rate.burst = burst;
            }
        })
    }

    /// So many starts in each calendar window, in UTC.
    pub fn quota(self, limit: u32, window: QuotaWindow) -> Self {
        let (zone, when_busy) = (Name::new("UTC"), WhenExhausted::Wait);
        self.policy(|policy| policy.each.quota = Some(QuotaPolicy { limit, window, zone, when_busy }))
    }

    /// Limits of this action count for each key by itself: a template over the input, such as
    /// `"{{ inputs.tenant }}"`.
    pub fn key(self, template: &str) -> Self {
        let template = Template(Arc::from(serde_json::Value::from(template).to_string()));
        self.change(|action| (action.key, action.policy.keyed) = (Some(template), true))
    }

    /// What becomes of a newcomer when the action's own [`concurrency`](ActionBuilder::concurrency) refuses it.
    pub fn when_busy(self, when_busy: WhenBusy) -> Self {
        self.policy(|policy| policy.when_busy = when_busy)
    }

    /// Every attempt takes so many units of a [pool](crate::Tidegate::pool).
    pub fn pool(self, pool: impl Into<Name>, units: u32) -> Self {
        let pool = pool.into();
        self.policy(|policy| {
            policy.pools.retain(|(known, _)| *known != pool);
            policy.pools.push((pool, units));
            policy.pools.sort();
        })
    }

    /// So many wait at most; more are refused. 10,000 unless told otherwise.
    pub fn line(self, max_length: u32) -> Self {
        self.policy(|policy| policy.line.max_length = max_length)
    }

    /// When the [line](ActionBuilder::line) is full, who has waited longest gives way instead of the newcomer.
    pub fn drop_oldest(self) -> Self {
        self.policy(|policy| policy.line.when_full = WhenFull::DropOldest)
    }

    /// Whatever has not started within this time expires. An hour unless told otherwise.
    pub fn start_within(self, span: Duration) -> Self {
        self.policy(|policy| policy.line.start_within = Some(span.into()))
    }

    /// So many tries in all. After a failed one comes a pause, which doubles each time; meanwhile nothing is held.
    pub fn retry(self, attempts: u32, delay: Duration) -> Self {
        self.policy(|policy| (policy.retry.attempts, policy.retry.delay) = (attempts, delay.into()))
    }

    /// How the pauses between tries grow, and how long they become at most.
    pub fn backoff(self, backoff: Backoff, max_delay: Duration) -> Self {
        self.policy(|policy| (policy.retry.backoff, policy.retry.max_delay) = (backoff, max_delay.into()))
    }

    /// So many losses of a worker are survived, besides failed tries. 3 unless told otherwise.
    pub fn max_losses(self, losses: u32) -> Self {
        self.policy(|policy| policy.max_losses = losses)
    }

    /// Bounds the running time of one attempt.
    pub fn timeout(self, span: Duration) -> Self {
        self.policy(|policy| policy.timeout = Some(span.into()))
    }

    /// Only workers of this queue run it.
    pub fn queue(self, queue: impl Into<Name>) -> Self {
        let queue = queue.into();
        self.policy(|policy| policy.needs.queue = queue)
    }

    /// Only workers with this label run it.
    pub fn label(self, label: impl Into<Name>) -> Self {
        let label = label.into();
        self.policy(|policy| {
            let labels = &mut policy.needs.labels;
            if let Err(place) = labels.binary_search(&label) {
                labels.insert(place, label);
            }
        })
    }

    /// What it does, for people.
    pub fn description(self, text: impl Into<String>) -> Self {
        self.change(|action| action.description = Some(text.into()))
    }
}

/// The line of code that said so.
pub(crate) fn origin(caller: &Location<'_>) -> Origin {
    Origin { file: Some(Name::new(caller.file())), line: caller.line() }
}

async fn call<F, I, O, E, R>(function: &F, ctx: Ctx, input: &Payload) -> Outcome
where
    F: Fn(Ctx, I) -> R,
    I: DeserializeOwned,
    O: Serialize,
    E: Display,
    R: Future<Output = Result<O, E>>,
{
    let input = match serde_json::from_slice(input.bytes()) {
        Ok(input) => input,
        Err(error) => return Outcome::failed(format!("the input does not fit the function: {error}")),
    };
    match function(ctx, input).await {
        Ok(output) => match serde_json::to_vec(&output) {
            Ok(output) => Outcome::Succeeded(Payload::new(output)),
            Err(error) => Outcome::failed(format!("the output cannot be written as JSON: {error}")),
        },
        Err(error) => Outcome::failed(error.to_string()),
    }
}
