//! A worker changes the number of its slots. None at all: it drains.

use crate::admission::SlotCounts;
use crate::core::Core;
use crate::ids::Name;
use crate::protocol::{Answer, Refusal, WorkerRow, Write};
use crate::time::Moment;

impl Core {
    pub(crate) fn offer(&mut self, worker: &Name, slots: SlotCounts, now: Moment) -> Result<Answer, Refusal> {
        if self.workers.get(worker).is_none_or(|worker| !worker.connected) {
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
