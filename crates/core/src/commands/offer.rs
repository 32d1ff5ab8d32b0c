//! A worker changes the number of its slots. None at all: it drains.

use crate::admission::SlotCounts;
use crate::core::Core;
use crate::ids::Name;
use crate::protocol::{Answer, Refusal, WorkerRow, Write};
use crate::time::Moment;
use crate::workers::Worker;

impl Core {
    pub(crate) fn offer(
        &mut self,
        worker: &Name,
        incarnation: u64,
        slots: SlotCounts,
        now: Moment,
    ) -> Result<Answer, Refusal> {
        let is_it = |known: &Worker| known.connected && known.incarnation == incarnation;
        if !self.workers.get(worker).is_some_and(is_it) {
            return Err(Refusal::UnknownWorker(worker.clone()));
        }
        self.set_slots(worker, slots, now);
        Ok(Answer::Done)
    }

    pub(crate) fn set_slots(&mut self, name: &Name, slots: SlotCounts, now: Moment) {
        let Some(worker) = self.workers.get(name).filter(|worker| worker.connected) else { return };
        let incarnation = worker.incarnation;
        let Some(known) = self.admission.slots().get(name.as_str()).filter(|known| known.slots != slots)
        else {
            return;
        };
        let skills = known.skills.clone();
        self.admission.set_worker(name, skills.clone(), slots, now);
        let row = WorkerRow { worker: name.clone(), incarnation, skills, slots };
        self.write(Write::WorkerJoined(Box::new(row)));
    }
}

#[cfg(test)]
mod tests {
    use crate::admission::SlotCounts;
    use crate::ids::TaskId;
    use crate::protocol::{Answer, Command, Refusal};
    use crate::state::State;
    use crate::testkit::{Kit, WORKER};
    use crate::time::Span;

    fn offer(worker: &str, slots: u32) -> Command {
        offer_of(worker, 1, slots)
    }

    fn offer_of(worker: &str, incarnation: u64, slots: u32) -> Command {
        Command::Offer { worker: worker.into(), incarnation, slots: SlotCounts { process: slots, io: slots } }
    }

    #[test]
    fn an_offer_is_written_only_if_it_changes_something() {
        let mut kit = Kit::new(1);
        assert_eq!(kit.apply(offer(WORKER, 1)), Answer::Done);
        assert_eq!(kit.writes, []);
        kit.apply(offer(WORKER, 2));
        assert_eq!(kit.writes.len(), 1);
    }

    #[test]
    fn what_an_earlier_start_offered_does_not_count() {
        let mut kit = Kit::new(1);
        kit.join(WORKER, 2, 1);
        assert_eq!(kit.refused(offer_of(WORKER, 1, 0)), Refusal::UnknownWorker(WORKER.into()));
        let job = TaskId::node(kit.job("work"));
        assert_eq!(kit.state(job), Some(State::Running));
    }

    #[test]
    fn who_was_silent_for_too_long_has_to_join_again() {
        let mut kit = Kit::new(0);
        let job = TaskId::node(kit.job("work"));
        kit.advance(Span::seconds(30));
        assert_eq!(kit.refused(offer(WORKER, 1)), Refusal::UnknownWorker(WORKER.into()));
        assert_eq!(kit.state(job), Some(State::Waiting));
    }
}
