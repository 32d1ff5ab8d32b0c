//! A worker joins, or comes back. A new incarnation has nothing of the old one's.

use crate::core::Core;
use crate::model::LEASE;
use crate::protocol::{Answer, Join, Refusal, WorkerRow, Write};
use crate::time::Moment;

impl Core {
    pub(crate) fn join(&mut self, join: Join, now: Moment) -> Result<Answer, Refusal> {
        let name = join.worker;
        let same = self.workers.get(&name).is_some_and(|worker| worker.incarnation == join.incarnation);
        if same {
            if let Some(worker) = self.workers.get_mut(&name) {
                (worker.seen, worker.connected) = (now, true);
            }
        } else {
            self.lose_worker(&name, now);
            self.workers.insert(&name, join.incarnation, now, now + LEASE);
        }
        self.admission.set_worker(&name, join.skills.clone(), join.slots, now);
        self.schedule_check(&name);
        self.write(Write::WorkerJoined(Box::new(WorkerRow {
            worker: name,
            incarnation: join.incarnation,
            skills: join.skills,
            slots: join.slots,
        })));
        Ok(Answer::Done)
    }
}
