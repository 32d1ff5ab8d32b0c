//! The clock of this machine, for the engine's own.

use std::pin::Pin;
use std::time::{Duration, Instant};
use tidegate_core::time::Moment;
use tokio::time::Sleep;

/// Without anything to wait for, this long is waited.
const LONGEST: Duration = Duration::from_secs(3_600);

/// Waits again and again, nearly always for the same: a timer is set anew only where it would come too late.
pub(super) struct Alarm {
    timer: Pin<Box<Sleep>>,
    set_to: Instant,
}

impl Alarm {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Alarm { timer: Box::pin(tokio::time::sleep_until(now.into())), set_to: now }
    }

    /// Waits until this time, or longer than anybody would. May be dropped and called again.
    pub(super) async fn reach(&mut self, at: Option<Instant>) {
        let at = at.unwrap_or_else(|| self.set_to.max(Instant::now() + LONGEST));
        if at < self.set_to {
            self.set(at);
        }
        loop {
            self.timer.as_mut().await;
            if at <= Instant::now() {
                return;
            }
            self.set(at);
        }
    }

    fn set(&mut self, at: Instant) {
        self.timer.as_mut().reset(at.into());
        self.set_to = at;
    }
}

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
