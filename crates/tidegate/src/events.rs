//! What happens, for a program that wants to follow.

use crate::error::Error;
use crate::tidegate::Tidegate;
use tidegate_engine::events::{Event, EventsError, Position, Subscription};

/// Events from now on, or from a position. See [`Tidegate::events`].
///
/// ```
/// use tidegate::{Happening, Position, State, Tidegate};
///
/// # #[tokio::main] async fn main() -> Result<(), tidegate::Error> {
/// let tide = Tidegate::open("memory:").await?;
/// tide.action("hello", |_, ()| async { Ok::<_, String>("hello") });
/// let mut working = tide.work(1).start().await?;
/// let run = tide.submit("hello", &()).await?;
///
/// let mut events = tide.events().after(Position::START);
/// let state = loop {
///     let event = events.next().await?;
///     println!("{} {}", event.position, event.what.kind());
///     if let (Some(id), Happening::RunFinished { state, .. }) = (event.run, event.what) {
///         assert_eq!(id, run.id());
///         break state;
///     }
/// };
/// assert_eq!(state, State::Succeeded);
/// # working.stop().await?;
/// # Ok(()) }
/// ```
#[must_use = "nothing is heard until `next` is awaited"]
pub struct Events {
    tide: Tidegate,
    subscription: Subscription,
}

impl Events {
    pub(crate) fn new(tide: &Tidegate, after: Option<Position>) -> Events {
        Events { tide: tide.clone(), subscription: tide.subscribe(after) }
    }

    /// Everything that happened after this position, as far as it is kept, and then what happens from now on.
    pub fn after(self, position: Position) -> Events {
        Events::new(&self.tide, Some(position))
    }

    /// Waits for the next event. After [`Error::Missed`] it goes on with what is known. May be dropped and called
    /// again.
    pub async fn next(&mut self) -> Result<Event, Error> {
        self.subscription.next().await.map_err(|error| match error {
            EventsError::Missed { from, to } => Error::Missed { from, to },
            EventsError::Store(error) => error.into(),
            EventsError::Ended => Error::Closed,
        })
    }
}
