//! What happened to a row that is not at hand: every part is kept or set.

use tidegate_core::ids::Epoch;
use tidegate_core::protocol::{GrantRow, Payload, Stop, Tally};
use tidegate_core::state::State;
use tidegate_core::time::Moment;

/// `None` keeps what the row says.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Change {
    pub state: Option<State>,
    pub due: Option<Option<Moment>>,
    /// Attempts started.
    pub attempts: Option<u32>,
    /// Failures and losses.
    pub faults: Option<(u32, u32)>,
    pub grant: Option<Option<GrantRow>>,
    pub stop: Option<Option<Stop>>,
    pub paused: Option<bool>,
    /// Counts only if the row says of no earlier start.
    pub started: Option<Moment>,
    pub entered: Option<Entered>,
    pub error: Option<Option<String>>,
    /// Priority and root.
    pub rank: Option<(i8, u64)>,
    /// Leases that last longer, if the row still has them: each once. None if `grant` is set.
    pub renewed: Vec<(Epoch, Moment)>,
    pub end: Option<End>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entered {
    Yes,
    /// A root that came due stands in line and holds nothing; a step that waits is past the limit of its run.
    IfStep,
}

#[derive(Clone, PartialEq, Debug)]
pub struct End {
    pub at: Moment,
    pub output: Option<Payload>,
}

impl Change {
    pub fn enter(&mut self, state: State, at: Moment) {
        self.state = Some(state);
        self.due = Some(None);
        self.entered = Some(if state == State::Waiting { Entered::IfStep } else { Entered::Yes });
        if state == State::Running {
            self.started.get_or_insert(at);
        }
    }

    pub fn enter_item(&mut self, at: Moment) {
        self.state = Some(State::Running);
        self.attempts = Some(1);
        self.started.get_or_insert(at);
    }

    pub fn grant(&mut self, grant: &GrantRow, number: u32) {
        self.state = Some(State::Running);
        self.due = Some(None);
        self.attempts = Some(number);
        self.started.get_or_insert(grant.at);
        self.stop = Some(None);
        self.hold(Some(grant.clone()));
    }

    pub fn move_to(&mut self, state: State, due: Option<Moment>, tally: Tally, error: Option<&str>) {
        self.state = Some(state);
        self.due = Some(due);
        self.attempts = Some(tally.started);
        self.faults = Some((tally.failures, tally.losses));
        self.stop = Some(None);
        self.hold(None);
        self.blame(error);
    }

    pub fn end(&mut self, state: State, error: Option<String>, end: End) {
        self.state = Some(state);
        self.due = Some(None);
        self.error = Some(error);
        self.hold(None);
        self.end = Some(end);
    }

    pub fn stop(&mut self, why: Stop, error: Option<&str>) {
        self.stop = Some(Some(why));
        self.blame(error);
    }

    pub fn renew(&mut self, epoch: Epoch, until: Moment) {
        match &mut self.grant {
            Some(Some(grant)) if grant.epoch == epoch => grant.until = until,
            Some(_) => {}
            None => {
                self.renewed.retain(|(known, _)| *known != epoch);
                self.renewed.push((epoch, until));
            }
        }
    }

    pub fn rank(&mut self, priority: i8, root: u64) {
        self.rank = Some((priority, root));
    }

    pub fn pause(&mut self, paused: bool) {
        self.paused = Some(paused);
    }

    /// Whether there is more to it than longer leases.
    pub fn is_more_than_renewed(&self) -> bool {
        *self != Change { renewed: self.renewed.clone(), ..Change::default() }
    }

    fn hold(&mut self, grant: Option<GrantRow>) {
        self.grant = Some(grant);
        self.renewed.clear();
    }

    fn blame(&mut self, error: Option<&str>) {
        if let Some(error) = error {
            self.error = Some(Some(error.to_owned()));
        }
    }
}
