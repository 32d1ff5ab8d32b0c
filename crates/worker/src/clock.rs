//! The worker's own clock: monotonic, the same for every process of this machine since it started.
//!
//! Worker and guardian can therefore name deadlines as points in time. A length of time would be stretched by
//! whatever happens between computing and reading it, such as a worker that is stopped in between.

use rustix::time::{ClockId, clock_gettime};
use tidegate_core::time::Moment;

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

/// Waits until the clock shows `moment`; not at all if it already does.
pub(crate) async fn sleep_until(moment: Moment) {
    loop {
        let left = moment.since(now());
        if left.0 == 0 {
            return;
        }
        tokio::time::sleep(left.into()).await;
    }
}
