//! Clocks and scales: the processor time of this thread, and the memory that is resident.

use rustix::time::{ClockId, clock_gettime};
use std::fs;

/// Nanoseconds that this thread has computed. What other programs take from it does not count, so that a long
/// command is a long command and not a busy machine.
pub fn computed() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// Bytes of this process that are in memory; 0 where the system does not say.
pub fn resident() -> u64 {
    let page = rustix::param::page_size() as u64;
    let text = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    text.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok()).map_or(0, |pages| pages * page)
}
