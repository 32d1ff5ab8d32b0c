//! Doing again what has ended.

use crate::error::Error;
use crate::run::Run;
use crate::submit::{accepted, new_id};
use crate::tidegate::Tidegate;
use std::future::IntoFuture;
use std::pin::Pin;
use tidegate_core::ids::{Name, RunId};
use tidegate_core::protocol;

/// Something that has ended and is to be done again: `.await` it.
///
/// See [`Tidegate::retry`].
#[must_use = "nothing is retried until this is awaited"]
pub struct Retry {
    tide: Tidegate,
    of: RunId,
    from_start: bool,
    queue: Option<Name>,
}

impl Retry {
    pub(crate) fn new(tide: &Tidegate, of: RunId) -> Retry {
        Retry { tide: tide.clone(), of, from_start: false, queue: None }
    }

    /// Nothing is reused: every step runs again. What succeeded wholly can only be retried so.
    pub fn from_start(mut self) -> Retry {
        self.from_start = true;
        self
    }

    /// It waits for workers of this queue instead of the one it was submitted to; see
    /// [`Submit::queue`](crate::Submit::queue).
    pub fn queue(mut self, queue: impl Into<Name>) -> Retry {
        self.queue = Some(queue.into());
        self
    }

    async fn send(self) -> Result<Run, Error> {
        let Retry { tide, of, from_start, queue } = self;
        tide.declare().await?;
        let id = new_id();
        let retry = protocol::Retry { id, of, from_start, queue, past: None };
        let answer = tide.engine().retry(retry).await?;
        accepted(&tide, id, None, answer).await
    }
}

impl IntoFuture for Retry {
    type Output = Result<Run, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}
