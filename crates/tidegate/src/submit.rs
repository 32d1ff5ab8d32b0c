//! Submissions: from a name and an input to something durable.
//!
//! Every submission has an id before it is sent, so that it may be sent again when nobody knows what became of it,
//! and is still accepted once.

use crate::error::Error;
use crate::evaluator::prepare;
use crate::run::Run;
use crate::store::wall_clock;
use crate::tidegate::Tidegate;
use serde::Serialize;
use std::collections::BTreeMap;
use std::future::IntoFuture;
use std::pin::Pin;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tidegate_core::ids::{Name, RunId};
use tidegate_core::model::{PRIORITIES, QUEUE_TAG};
use tidegate_core::protocol::{self, Answer, BATCH_BYTES, Idempotency, Payload, Refusal, check_size};
use tidegate_core::time::Moment;
use tidegate_engine::{Definition, Engine, in_one_form};
use tidegate_store::Post;
use tokio_postgres::GenericClient;
use uuid::Uuid;

/// Submissions sent together, if they are not large: as many as the engine commits at once.
const TOGETHER: usize = 1_000;
/// A thousand years: longer than anybody waits, and short enough to be written down as a date.
const LONGEST_DELAY: Duration = Duration::from_secs(1_000 * 365 * 86_400);
/// 9999-12-30 22:00 UTC: the last time that every reader of times takes, whatever its zone.
const LAST_TIME: Duration = Duration::from_secs(253_402_207_200);

/// Something to be submitted: `.await` it, or hand many to [`Tidegate::submit_many`].
///
/// See [`Tidegate::submit`].
#[must_use = "nothing is submitted until this is awaited"]
pub struct Submit {
    tide: Tidegate,
    name: Name,
    input: Result<String, serde_json::Error>,
    tags: Vec<(Name, Name)>,
    priority: i8,
    due: Due,
    key: Option<Name>,
}

#[derive(Clone, Copy)]
enum Due {
    Now,
    In(Duration),
    At(SystemTime),
}

impl Submit {
    pub(crate) fn new(tide: &Tidegate, name: Name, input: &impl Serialize) -> Submit {
        let input = serde_json::to_string(input);
        Submit { tide: tide.clone(), name, input, tags: Vec::new(), priority: 0, due: Due::Now, key: None }
    }

    /// A tag, by which runs of flows can be limited. It replaces one of the same name that the flow gives itself.
    pub fn tag(mut self, tag: impl Into<Name>, value: impl Into<Name>) -> Submit {
        let tag = tag.into();
        self.tags.retain(|(known, _)| *known != tag);
        self.tags.push((tag, value.into()));
        self
    }

    /// Everything that belongs to it waits for workers of this queue instead of the default one, unless an action or step
    /// names its own. It is the tag `tidegate.queue`, which whoever submits otherwise can give as well.
    pub fn queue(self, queue: impl Into<Name>) -> Submit {
        self.tag(QUEUE_TAG, queue)
    }

    /// From -100 to 100; higher starts first. 0 unless told otherwise.
    pub fn priority(mut self, priority: i8) -> Submit {
        self.priority = priority;
        self
    }

    /// An idempotency key: the same key with the same content is accepted once, and gives the same run again, also
    /// after a restart. With other content it is refused. Keys are remembered for a day at least.
    pub fn key(mut self, key: impl Into<Name>) -> Submit {
        self.key = Some(key.into());
        self
    }

    /// Not before so much time has passed.
    pub fn delay(mut self, span: Duration) -> Submit {
        self.due = Due::In(span);
        self
    }

    /// Not before this time. One that has passed is now, and one beyond the year 9999 is then.
    pub fn at(mut self, time: SystemTime) -> Submit {
        self.due = Due::At(time.clamp(UNIX_EPOCH, UNIX_EPOCH + LAST_TIME));
        self
    }

    /// Leaves it in the mailbox of the store, inside a transaction of the caller's own: it is submitted if that
    /// transaction commits, and was never there otherwise. Only for a store on PostgreSQL, in the same database. What
    /// cannot be accepted then is kept as a run that ended `refused`. A key that was used before leaves nothing under this
    /// id.
    pub async fn in_transaction(self, client: &impl GenericClient) -> Result<RunId, Error> {
        let Submit { tide, name, input, tags, priority, key, due } = self;
        if !PRIORITIES.contains(&priority) {
            return Err(Error::Priority(priority));
        }
        tide.declare().await?;
        let wrong = |error| Error::Inputs {
            name: name.to_string(),
            reason: format!("the input cannot be written as JSON: {error}"),
        };
        let input = input.map_err(wrong)?;
        check_size(input.len())?;
        let due = match due {
            Due::Now => None,
            Due::At(time) => Some(time),
            Due::In(span) => Some(SystemTime::now() + span.min(LONGEST_DELAY)),
        };
        let post = Post { name: &name, input: &input, tags: &tags, priority, key: key.as_ref(), due };
        post.leave(client).await.map_err(Error::Transaction)
    }

    async fn send(self) -> Result<Run, Error> {
        let tide = self.tide.clone();
        let submit = self.prepare(&mut BTreeMap::new()).await?;
        let (id, key) = (submit.id, submit.idempotency.clone().map(|known| known.key));
        let answers = tide.engine().submit_new(vec![submit]).await?;
        let answer = answers.into_iter().next().ok_or(Error::Unavailable)?;
        accepted(&tide, id, key, answer).await
    }

    /// Looks a name up only once.
    async fn prepare(self, known: &mut BTreeMap<Name, Definition>) -> Result<protocol::Submit, Error> {
        let tide = self.tide.clone();
        tide.declare().await?;
        let definition = match known.get(&self.name) {
            Some(definition) => definition.clone(),
            None => {
                let definition = tide.definition(&self.name).await?;
                known.entry(self.name.clone()).or_insert(definition).clone()
            }
        };
        let due = match self.due {
            Due::Now => None,
            Due::At(time) => Some(wall_clock(time)),
            Due::In(span) => Some(tide.insist(Engine::now).await? + span.into()),
        };
        self.resolve(&definition, due)
    }

    fn resolve(self, definition: &Definition, due: Option<Moment>) -> Result<protocol::Submit, Error> {
        let Submit { name, input, mut tags, priority, key, .. } = self;
        let wrong = |reason: String| Error::Inputs { name: name.to_string(), reason };
        if !PRIORITIES.contains(&priority) {
            return Err(Error::Priority(priority));
        }
        let input = input.map_err(|error| wrong(format!("the input cannot be written as JSON: {error}")))?;
        // Before anything is made of it.
        check_size(input.len())?;
        // What is compared with what else comes under its key is written in one form.
        let input = if key.is_some() { in_one_form(&input) } else { input };
        let input = Payload::new(input);
        let idempotency = key.map(|key| Idempotency::of(key, &name, &input));
        let prepared = prepare(&name, definition, &input).map_err(wrong)?;
        for (tag, value) in prepared.tags {
            // What is given wins over the flow's own.
            if tags.iter().all(|(given, _)| *given != tag) {
                tags.push((tag, value));
            }
        }
        let id = new_id();
        let submit = protocol::Submit { id, what: prepared.what, tags, priority, due, idempotency };
        check_size(submit.size())?;
        Ok(submit)
    }
}

impl IntoFuture for Submit {
    type Output = Result<Run, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}

/// In the order in which they were given; each is accepted or refused by itself.
pub(crate) async fn submit_many(
    tide: &Tidegate,
    submits: impl IntoIterator<Item = Submit>,
) -> Vec<Result<Run, Error>> {
    let mut submits = submits.into_iter().peekable();
    let mut known = BTreeMap::new();
    let mut runs = Vec::new();
    while submits.peek().is_some() {
        let (mut together, mut bytes) = (Vec::new(), 0);
        while together.len() < TOGETHER && bytes < BATCH_BYTES {
            let Some(submit) = submits.next() else { break };
            let submit = submit.prepare(&mut known).await;
            bytes += submit.as_ref().map_or(0, protocol::Submit::size);
            together.push(submit);
        }
        submit_together(tide, together, &mut runs).await;
    }
    runs
}

/// One errand. Without an answer nobody knows what became of any of them.
async fn submit_together(
    tide: &Tidegate,
    together: Vec<Result<protocol::Submit, Error>>,
    runs: &mut Vec<Result<Run, Error>>,
) {
    let submits = together.iter().flatten().cloned().collect();
    let answers = tide.engine().submit_new(submits).await;
    let mut answers = answers.map(Vec::into_iter);
    for submit in together {
        let run = match (submit, &mut answers) {
            (Err(error), _) => Err(error),
            (Ok(_), Err(error)) => Err(error.clone().into()),
            (Ok(submit), Ok(answers)) => match answers.next() {
                Some(answer) => {
                    let key = submit.idempotency.map(|known| known.key);
                    accepted(tide, submit.id, key, answer).await
                }
                None => Err(Error::Unavailable),
            },
        };
        runs.push(run);
    }
}

/// Of something that was never asked for before.
pub(crate) fn new_id() -> RunId {
    RunId(Uuid::now_v7().as_u128())
}

pub(crate) async fn accepted(
    tide: &Tidegate,
    id: RunId,
    key: Option<Name>,
    answer: Answer,
) -> Result<Run, Error> {
    let (id, node) = match (answer, key) {
        // It was submitted before under this key, and has its id from then.
        (Answer::Accepted { node, again: true }, Some(key)) => {
            let found = tide.insist(|engine| engine.find_key(key.clone())).await?;
            (found.filter(|(found, _)| *found == node).map_or(id, |(_, id)| id), node)
        }
        (Answer::Accepted { node, .. }, _) => (id, node),
        (Answer::Refused(Refusal::UnknownRun(of)), _) => return Err(Error::UnknownRun(of)),
        (Answer::Refused(refusal), _) => return Err(refusal.into()),
        (Answer::Done | Answer::Renewal(_), _) => return Err(Error::Unavailable),
    };
    Ok(Run::new(tide.clone(), id, node))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[tokio::test]
    async fn a_tag_that_is_given_wins_over_the_flows_own() {
        let text = "flow: a\ntags: { tenant: acme, team: data }\nsteps: { b: { run: [ls] } }\n";
        let flow = tidegate_flow::parse("a.yaml", text).expect("it is valid").flows.remove(0);
        let tide = Tidegate::open("memory:").await.expect("it opens");
        let submit = tide.submit("a", &()).tag("tenant", "twice").tag("tenant", "other");
        let submit = submit.resolve(&Definition::Flow(Arc::new(flow)), None).expect("it needs no inputs");
        let expected = [("tenant", "other"), ("team", "data")];
        assert_eq!(submit.tags, expected.map(|(tag, value)| (Name::new(tag), Name::new(value))));
    }
}
