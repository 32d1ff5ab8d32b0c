//! An operator's word about limits while everything runs.

use crate::error::Error;
use crate::tidegate::Tidegate;
use std::future::IntoFuture;
use std::pin::Pin;
use std::time::Duration;
use tidegate_core::admission::LimitKey;
use tidegate_core::ids::Name;
use tidegate_core::protocol::{self, Command, LimitValue, Pausable};
use tidegate_engine::Engine;

/// Limits by the names under which explanations show them: `runs`, `action:NAME`, `action:NAME/KEY`, `pool:NAME`,
/// `tag:NAME=VALUE`, `flow:NAME`, `total:PATTERN`, `rate:NAME`, `quota:NAME`.
///
/// ```
/// # #[tokio::main] async fn main() -> Result<(), tidegate::Error> {
/// let tide = tidegate::Tidegate::open("memory:").await?;
/// tide.limits().set("action:mail", 2).await?;
/// tide.limits().pause("action:mail").await?;
/// tide.limits().resume("action:mail").await?;
/// tide.limits().reset("action:mail").await?;
/// let slip = tide.limits().set("acton:mail", 2).await;
/// assert_eq!(slip.unwrap_err().to_string(), "there is no kind of limit `acton`; did you mean `action`?");
/// # Ok(()) }
/// ```
pub struct Limits {
    tide: Tidegate,
}

impl Limits {
    pub(crate) fn new(tide: Tidegate) -> Limits {
        Limits { tide }
    }

    /// Sets a limit, over what was declared, until it is reset. Who runs is left alone; who waits counts from now on.
    pub fn set(&self, limit: &str, value: impl Into<LimitValue>) -> SetLimit {
        SetLimit {
            tide: self.tide.clone(),
            key: limit.parse().map_err(Error::from),
            value: value.into(),
            by: self.tide.who(),
            lasts: None,
        }
    }

    /// Takes back what was set, so that the declared value counts again.
    pub async fn reset(&self, limit: &str) -> Result<(), Error> {
        let (key, by) = (limit.parse()?, self.tide.who());
        let reset = protocol::SetLimit { key, value: None, by, until: None };
        self.tide.ask(Command::SetLimit(reset)).await.map(drop)
    }

    /// Lets nobody past this limit until it is resumed; what runs goes on.
    pub async fn pause(&self, limit: &str) -> Result<(), Error> {
        self.tide.ask(Command::Pause(pausable(limit)?)).await.map(drop)
    }

    /// Takes back a pause.
    pub async fn resume(&self, limit: &str) -> Result<(), Error> {
        self.tide.ask(Command::Resume(pausable(limit)?)).await.map(drop)
    }
}

fn pausable(limit: &str) -> Result<Pausable, Error> {
    Ok(match limit.parse()? {
        LimitKey::Action(action) => Pausable::Action(action),
        key => Pausable::Limit(key),
    })
}

/// A limit that is about to be set: `.await` it.
#[must_use = "nothing is set until this is awaited"]
pub struct SetLimit {
    tide: Tidegate,
    key: Result<LimitKey, Error>,
    value: LimitValue,
    by: Name,
    lasts: Option<Duration>,
}

impl SetLimit {
    /// Who says so, for explanations.
    pub fn by(mut self, who: impl Into<Name>) -> SetLimit {
        self.by = who.into();
        self
    }

    /// It ends by itself after so much time.
    pub fn lasting(mut self, span: Duration) -> SetLimit {
        self.lasts = Some(span);
        self
    }

    async fn send(self) -> Result<(), Error> {
        let SetLimit { tide, key, value, by, lasts } = self;
        let key = key?;
        // A pool that only this program knows of must exist before it can be set.
        tide.declare().await?;
        let until = match lasts {
            Some(span) => Some(tide.insist(Engine::now).await? + span.into()),
            None => None,
        };
        let set = protocol::SetLimit { key, value: Some(value), by, until };
        tide.ask(Command::SetLimit(set)).await.map(drop)
    }
}

impl IntoFuture for SetLimit {
    type Output = Result<(), Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}
