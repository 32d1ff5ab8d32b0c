//! The clock of this machine, for the engine's own.

use std::time::{Duration, Instant};
use tidegate_core::time::Moment;

/// A clock that only goes forward, beginning at the wall clock's time.
#[derive(Clone, Copy)]
pub(super) struct LocalClock {
    wall: Moment,
    start: Instant,
}

impl LocalClock {
    pub(super) fn start() -> Self {
        let wall = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(Moment(0), |since| Moment(i64::try_from(since.as_micros()).unwrap_or(i64::MAX)));
        LocalClock { wall, start: Instant::now() }
    }

    pub(super) fn now(&self) -> Moment {
        self.wall + self.start.elapsed().into()
    }

    pub(super) fn instant(&self, at: Moment) -> Instant {
        self.start + Duration::from(at.since(self.wall))
    }
}
