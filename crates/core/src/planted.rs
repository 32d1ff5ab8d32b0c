//! Bugs on purpose. Each switch breaks one rule, so that the simulator's oracle can be shown to notice.
//!
//! Compiled only with the feature `planted-bugs`, which nothing that ships turns on.

/// One switch a bug.
#[derive(Clone, Debug, Default)]
pub struct Planted {
    pub release_twice: bool,
    pub barging: bool,
    pub reservation_ignored: bool,
    /// Every so many'th wake-up is lost.
    pub wakeup_dropped: Option<u32>,
    pub wakeups: u32,
}

impl Planted {
    pub fn drops_wakeup(&mut self) -> bool {
        self.wakeups = self.wakeups.wrapping_add(1);
        self.wakeup_dropped.is_some_and(|every| self.wakeups.is_multiple_of(every))
    }
}
