//! Carries chains out: one member after the other, each rendered when it is its turn.
//!
//! A chain is one attempt. Nothing of it is kept before it ends: whoever tries again begins with the first member.
//! However it ends, what it had under way ends with it: requests and statements because they are dropped, processes
//! because whoever waits for one and goes away has it stopped (`relay`).

mod record;
mod relay;

pub(crate) use relay::{Ask, Asker, Relay};

use crate::ctx::Ctx;
use crate::http::Requests;
use crate::program::Program;
use crate::sql::Databases;
use record::{Record, with_rounds};
use serde_json::Value as Json;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::pin::Pin;
use std::sync::Arc;
use tidegate_core::model::{Cause, ONCE, Order};
use tidegate_core::protocol::{Failure, Outcome, Payload};
use tidegate_core::time::Span;
use tidegate_flow::chain::{Chain, LONGEST_PAUSE, Member, MemberWork, Repeat, Scope};

/// What the members of one chain are carried out with.
#[derive(Clone)]
pub(crate) struct Hands {
    pub(crate) requests: Requests,
    pub(crate) databases: Databases,
    pub(crate) processes: Asker,
    pub(crate) ctx: Ctx,
}

/// Why there is no output.
enum Trouble {
    Failed(Failure),
    /// It was told to stop, and has.
    Stopped,
}

type Ended = Result<Payload, Trouble>;

impl From<String> for Trouble {
    fn from(sentence: String) -> Trouble {
        Trouble::Failed(Failure::new(sentence))
    }
}

impl Trouble {
    /// Says where it happened.
    fn at(self, place: impl std::fmt::Display) -> Trouble {
        match self {
            Trouble::Failed(failure) => {
                Trouble::Failed(Failure { error: format!("{place}: {}", failure.error), ..failure })
            }
            Trouble::Stopped => Trouble::Stopped,
        }
    }

    fn in_round(self, round: u32) -> Trouble {
        match self {
            Trouble::Failed(failure) => {
                let output = failure.output.map(|output| with_rounds(output, round));
                Trouble::Failed(Failure { output, ..failure })
            }
            Trouble::Stopped => Trouble::Stopped,
        }
        .at(format_args!("round {round}"))
    }
}

impl Hands {
    /// Dropping this ends the chain, and what it has under way.
    pub(crate) async fn perform(self, chain: Chain) -> Outcome {
        let scope = off_thread(move || (Scope::new(&chain.scope), chain.root)).await;
        let (scope, root) = match scope {
            Ok(begin) => begin,
            Err(error) => return Outcome::failed(error),
        };
        match self.body(&scope, &root).await {
            Ok(output) => Outcome::Succeeded(output),
            Err(Trouble::Failed(failure)) => Outcome::Failed(failure),
            Err(Trouble::Stopped) => Outcome::Stopped,
        }
    }

    /// All of a member: whether it is done at all, and how often it is tried. Nothing, if it is skipped.
    async fn member(&self, scope: &Scope, member: &Arc<Member>) -> Result<Option<Payload>, Trouble> {
        if let Some(when) = &member.when
            && !holds(scope, when, "when").await?
        {
            return Ok(None);
        }
        let retry = member.retry.as_ref().unwrap_or(&ONCE);
        let mut failures = 0;
        loop {
            let failure = match self.tried(scope, member).await {
                Ok(output) => return Ok(Some(output)),
                Err(Trouble::Failed(failure)) => failure,
                Err(Trouble::Stopped) => return Err(Trouble::Stopped),
            };
            failures += 1;
            let asked_for = failure.retry_after.unwrap_or_default();
            let pause = retry.pause(failures, RandomState::new().hash_one(failures)).max(asked_for);
            // Who asks for more time than there is here is asked again by the next attempt of the whole.
            if failures >= retry.attempts || !retry.is_for(failure.cause.as_ref()) || pause > LONGEST_PAUSE {
                return Err(Trouble::Failed(failure));
            }
            self.pause(pause).await?;
        }
    }

    async fn tried(&self, scope: &Scope, member: &Arc<Member>) -> Ended {
        let Some(timeout) = member.timeout else { return self.body(scope, member).await };
        if let Ok(ended) = tokio::time::timeout(timeout.into(), self.body(scope, member)).await {
            return ended;
        }
        // Whatever comes next begins when nothing of this is left.
        self.processes.settled().await;
        let failure = Failure::new(format!("it ran longer than its timeout of {timeout}"));
        Err(Trouble::Failed(failure.caused_by(Cause::TIMEOUT)))
    }

    /// What a member does, round after round.
    fn body<'a>(
        &'a self,
        scope: &'a Scope,
        member: &'a Arc<Member>,
    ) -> Pin<Box<dyn Future<Output = Ended> + Send + 'a>> {
        Box::pin(async move {
            let mut scope = scope.clone();
            match &member.repeat {
                Some(repeat) => self.rounds(&mut scope, member, repeat).await,
                None => self.once(&mut scope, member).await,
            }
        })
    }

    async fn rounds(&self, scope: &mut Scope, member: &Arc<Member>, repeat: &Repeat) -> Ended {
        for round in 1..=repeat.max {
            scope.begins_round(round);
            let ended = self.once(scope, member).await;
            let output = ended.map_err(|trouble| trouble.in_round(round))?;
            if !matches!(member.work, MemberWork::Do(_)) {
                *scope = with_ended(scope, member, "succeeded", &output).await?;
            }
            let goes_on = holds(scope, &repeat.condition, "while").await;
            if !goes_on.map_err(|trouble| trouble.in_round(round))? {
                return Ok(with_rounds(output, round));
            }
            if round < repeat.max {
                self.pause(repeat.delay).await?;
            }
        }
        Err(format!("`repeat`: `while` is still true after {} rounds, which is its `max`", repeat.max).into())
    }

    async fn once(&self, scope: &mut Scope, member: &Arc<Member>) -> Ended {
        match &member.work {
            MemberWork::Do(members) => self.chain(scope, members).await,
            MemberWork::Wait(wait) => {
                self.pause(scope.pause(wait)?).await?;
                Ok(Payload::null())
            }
            _ => self.single(scope, member).await,
        }
    }

    /// Members one after the other, until one fails. Afterwards the scope is what a `while` sees.
    async fn chain(&self, scope: &mut Scope, members: &[Arc<Member>]) -> Ended {
        let mut record = Record::default();
        for member in members {
            let (state, output) = match self.member(scope, member).await {
                Ok(Some(output)) => ("succeeded", output),
                Ok(None) => ("skipped", Payload::null()),
                Err(Trouble::Stopped) => return Err(Trouble::Stopped),
                Err(Trouble::Failed(mut failure)) => {
                    let output = failure.output.take().unwrap_or_else(Payload::null);
                    if record.add(&member.name, "failed", output).is_ok() {
                        failure.output = Some(record.payload());
                    }
                    return Err(Trouble::Failed(failure).at(format_args!("member `{}`", member.name)));
                }
            };
            *scope = with_ended(scope, member, state, &output).await?;
            record.add(&member.name, state, output)?;
        }
        Ok(record.payload())
    }

    /// What one runner carries out.
    async fn single(&self, scope: &Scope, member: &Arc<Member>) -> Ended {
        let (seen, of) = (scope.clone(), member.clone());
        let Some(order) = off_thread(move || seen.order(&of.work)).await?? else {
            return Ok(Payload::null());
        };
        let identity = self.processes.identity();
        let outcome = match order {
            Order::Run { argv, surroundings } => {
                let program = Program::new(argv, surroundings, identity)?;
                self.unless_stopped(self.processes.run(program)).await?
            }
            Order::Shell { script, surroundings } => {
                let program = Program::script(script, surroundings, identity)?;
                self.unless_stopped(self.processes.run(program)).await?
            }
            Order::Http(request) => self.unless_stopped(self.requests.clone().perform(request)).await?,
            // It hears by itself that it is to stop, and then waits until the server has, too.
            Order::Sql(statements) => self.databases.clone().perform(self.ctx.clone(), statements).await,
        };
        match outcome.within_bounds() {
            Outcome::Succeeded(output) => Ok(output),
            Outcome::Failed(failure) => Err(Trouble::Failed(failure)),
            Outcome::Stopped | Outcome::HandedBack => Err(Trouble::Stopped),
        }
    }

    /// Also without any time it is a point at which the chain can be stopped.
    async fn pause(&self, span: Span) -> Result<(), Trouble> {
        self.unless_stopped(tokio::time::sleep(span.into())).await
    }

    async fn unless_stopped<T>(&self, work: impl Future<Output = T>) -> Result<T, Trouble> {
        tokio::select! {
            biased;
            () = self.ctx.cancelled() => Err(Trouble::Stopped),
            done = work => Ok(done),
        }
    }
}

/// The scope of those who come after a member.
async fn with_ended(
    scope: &Scope,
    member: &Arc<Member>,
    state: &'static str,
    output: &Payload,
) -> Result<Scope, Trouble> {
    let (mut scope, member, output) = (scope.clone(), member.clone(), output.clone());
    let seen = off_thread(move || {
        let output: Json = serde_json::from_slice(output.bytes()).map_err(|error| error.to_string())?;
        scope.ended(member.name.as_str(), state, &output);
        Ok::<Scope, String>(scope)
    });
    Ok(seen.await??)
}

async fn holds(scope: &Scope, condition: &str, field: &'static str) -> Result<bool, Trouble> {
    let (scope, condition) = (scope.clone(), condition.to_owned());
    Ok(off_thread(move || scope.holds(&condition, field)).await??)
}

/// Templates may count to a million, and outputs have megabytes: nobody else should have to wait for that. The error is
/// a sentence.
async fn off_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, String> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| format!("a template could not be rendered: {error}"))
}
