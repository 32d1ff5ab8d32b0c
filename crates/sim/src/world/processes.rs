//! Processes: they really overlap, take their time to die, and are ended by a guardian when their worker cannot. Functions
//! of an embedded engine have no guardian: they end and stand still with everything else, and some block their thread.

use super::workers::GRACE;
use super::{Event, WorkerId, World};
use crate::oracle::{Violation, label_of};
use crate::random::Random;
use tidegate_core::protocol::{Attempt, Lease, Outcome, Payload};
use tidegate_core::time::{Moment, Span};

/// How long a function may block. The engine takes nothing from a worker that could not be heard for a third of a lease;
/// what blocks for longer than that, or than what is left of its own lease, may overlap with its next attempt.
const MOST_BLOCKED: Span = Span::millis(2_500);

#[derive(Debug)]
pub(crate) struct Process {
    pub label: String,
    pub(super) outcome: Outcome,
    pub(super) kills_worker: bool,
    /// It ends in its own time, whatever it is told.
    pub(super) blocks: bool,
    /// It stood still past its deadline: whatever is promised, it may overlap with what comes after it.
    pub(super) overdue: bool,
    /// When the guardian makes an end of it unless told otherwise (world time).
    pub(super) guardian: Moment,
    /// It was told to end, and how it will say it ended.
    pub(super) ending: Option<Outcome>,
}

impl World {
    pub(super) fn start_process(
        &mut self,
        id: WorkerId,
        attempt: Attempt,
        guardian: Moment,
    ) -> Result<(), Violation> {
        let label = label_of(&attempt.order);
        let behaviour = self.behaviour(&label, attempt.number);
        let lease = attempt.lease;
        let worker = &mut self.workers[id];
        let (life, guardian) = (worker.life, guardian - worker.skew);
        let blocks = behaviour.blocks && self.now + behaviour.lasts <= guardian;
        worker.processes.insert(
            lease,
            Process {
                label: label.clone(),
                outcome: behaviour.outcome,
                kills_worker: behaviour.kills_worker,
                blocks,
                overdue: false,
                guardian,
                ending: None,
            },
        );
        let (name, slots) = (worker.plan.name.clone(), worker.plan.most_at_once());
        let running = worker.processes.values().filter(|process| !process.overdue).count();
        self.oracle.started(&label, lease, &name, running, slots, self.now)?;
        self.after(behaviour.lasts, Event::ProcessDone { worker: id, life, lease });
        if !self.plan.embedded {
            self.after(guardian.since(self.now), Event::Guardian { worker: id, life, lease });
        }
        Ok(())
    }

    /// What a process does depends on what it is and on which try it is, never on when it runs.
    fn behaviour(&self, label: &str, number: u32) -> Behaviour {
        let text = format!("{}/{label}/{number}", self.plan.seed);
        let seed =
            text.bytes().fold(7u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3));
        let mut random = Random::new(seed);
        let kind = self.oracle.kind_of(label);
        let (longest, fails) = kind.map_or((Span::millis(900), 12), |kind| (kind.longest, kind.fails));
        let outcome = if random.chance(fails) {
            Outcome::failed("it failed")
        } else {
            Outcome::Succeeded(Payload::new("1"))
        };
        let lasts = Span::micros(random.between(1_000, longest.0));
        Behaviour {
            lasts,
            blocks: self.plan.embedded && lasts <= MOST_BLOCKED && random.chance(40),
            outcome,
            kills_worker: kind.is_some_and(|kind| kind.kills_worker),
        }
    }

    pub(super) fn process_done(&mut self, id: WorkerId, life: u64, lease: Lease) -> Result<(), Violation> {
        let goes_on = |process: &&Process| process.ending.is_none() || process.blocks;
        let Some(process) = self.workers[id].processes.get(&lease).filter(goes_on) else { return Ok(()) };
        if self.stands_still(id) {
            self.workers[id].missed.push(Event::ProcessDone { worker: id, life, lease });
            return Ok(());
        }
        if process.kills_worker && self.workers[id].life == life {
            self.kill_from_within(id);
            return Ok(());
        }
        let outcome = process.outcome.clone();
        self.process_is_over(id, life, lease, outcome)
    }

    /// A function that stood still past its deadline could not be ended in time. That is the exception to what is promised
    /// of leases; whatever it reports is still void.
    pub(super) fn forgive_overdue(&mut self, id: WorkerId) {
        for (lease, process) in &mut self.workers[id].processes {
            if process.guardian - GRACE <= self.now {
                process.overdue = true;
                self.oracle.ended(&process.label, *lease, self.now);
            }
        }
    }

    fn kill_from_within(&mut self, id: WorkerId) {
        match self.plan.embedded {
            true => self.kill_process("task killed its process"),
            false => self.kill_worker(id, "task killed its worker"),
        }
    }

    pub(super) fn end_process(&mut self, id: WorkerId, lease: Lease, says: Outcome) {
        let span = Span::micros(self.random.between(100, GRACE.0 / 2));
        let worker = &mut self.workers[id];
        let life = worker.life;
        if let Some(process) = worker.processes.get_mut(&lease) {
            process.ending.get_or_insert(says);
            if process.blocks {
                return;
            }
            self.after(span, Event::ProcessGone { worker: id, life, lease });
        }
    }

    pub(super) fn process_gone(&mut self, id: WorkerId, life: u64, lease: Lease) -> Result<(), Violation> {
        let ending = self.workers[id].processes.get(&lease).and_then(|process| process.ending.clone());
        if self.stands_still(id) {
            self.workers[id].missed.push(Event::ProcessGone { worker: id, life, lease });
            return Ok(());
        }
        match ending {
            Some(outcome) => self.process_is_over(id, life, lease, outcome),
            None => Ok(()),
        }
    }

    /// Physically over, whether or not its worker is there to notice.
    fn process_is_over(
        &mut self,
        id: WorkerId,
        life: u64,
        lease: Lease,
        outcome: Outcome,
    ) -> Result<(), Violation> {
        if let Some(process) = self.workers[id].processes.remove(&lease) {
            self.oracle.ended(&process.label, lease, self.now);
        }
        self.process_ended(id, life, lease, outcome)
    }

    /// The worker is told that a process is over.
    pub(super) fn process_ended(
        &mut self,
        id: WorkerId,
        life: u64,
        lease: Lease,
        outcome: Outcome,
    ) -> Result<(), Violation> {
        let again = outcome.clone();
        if !self.notices(id, life, || Event::ProcessEnded { worker: id, life, lease, outcome: again }) {
            return Ok(());
        }
        let local = self.workers[id].local(self.now);
        let attempts = self.workers[id].attempts.as_mut();
        let actions = attempts.map(|attempts| attempts.ended(lease, outcome, local)).unwrap_or_default();
        self.act(id, actions)?;
        self.say_if_aborted(id);
        self.leave_if_empty(id);
        Ok(())
    }

    /// The guardian ends what is past the last deadline it was told, although its worker cannot.
    pub(super) fn guardian_looks(&mut self, id: WorkerId, life: u64, lease: Lease) -> Result<(), Violation> {
        let Some(process) = self.workers[id].processes.get(&lease) else { return Ok(()) };
        if process.guardian > self.now {
            let span = process.guardian.since(self.now);
            self.after(span, Event::Guardian { worker: id, life, lease });
            return Ok(());
        }
        self.process_is_over(id, life, lease, Outcome::Stopped)
    }
}

struct Behaviour {
    lasts: Span,
    outcome: Outcome,
    kills_worker: bool,
    blocks: bool,
}
