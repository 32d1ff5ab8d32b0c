//! The worker's own clock: monotonic, the same for every process of this machine since it started.
//!
//! Worker and guardian can therefore name deadlines as points in time. A length of time would be stretched by
//! whatever happens between computing and reading it, such as a worker that is stopped in between.

use rustix::time::{ClockId, clock_gettime};
use std::pin::Pin;
use std::time::Duration;
use tidegate_core::time::Moment;
use tokio::time::{Instant, Sleep};

/// A timer that is set later than this goes off in between.
const LONGEST: Duration = Duration::from_secs(3_600);

/// Microseconds of `CLOCK_MONOTONIC`. Not wall time: it never jumps, and means nothing on another machine.
pub fn now() -> Moment {
    let time = clock_gettime(ClockId::Monotonic);
    Moment(time.tv_sec * 1_000_000 + time.tv_nsec / 1_000)
}

/// Wall time, for people to read.
pub(crate) fn wall() -> Moment {
    let time = clock_gettime(ClockId::Realtime);
    Moment(time.tv_sec * 1_000_000 + time.tv_nsec / 1_000)
}

/// Waits again and again, nearly always for the same: a timer is set anew only where it would come too late.
pub(crate) struct Alarm {
    timer: Pin<Box<Sleep>>,
    set_to: Moment,
}

impl Alarm {
    pub(crate) fn new() -> Alarm {
        Alarm { timer: Box::pin(tokio::time::sleep(Duration::ZERO)), set_to: now() }
    }

    /// Waits until the clock shows `moment`; not at all if it already does. May be dropped and called again.
    pub(crate) async fn reach(&mut self, moment: Moment) {
        if moment < self.set_to {
            self.set(moment);
        }
        loop {
            self.timer.as_mut().await;
            if moment <= now() {
                return;
            }
            self.set(moment);
        }
    }

    fn set(&mut self, moment: Moment) {
        let left = Duration::from(moment.since(now())).min(LONGEST);
        self.timer.as_mut().reset(Instant::now() + left);
        self.set_to = moment;
    }
}

/// Waits until the clock shows `moment`; not at all if it already does.
pub(crate) async fn sleep_until(moment: Moment) {
    Alarm::new().reach(moment).await;
}
