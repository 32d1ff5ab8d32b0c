//! What is known of workers: when they come and go, and what goes with them.

use super::Oracle;
use tidegate_core::ids::Name;
use tidegate_core::protocol::Lease;
use tidegate_core::time::Moment;

impl Oracle {
    /// A worker died with everything it was handed, whether or not it had begun with it.
    pub fn lost_worker(&mut self, worker: &Name, now: Moment) {
        self.turns(worker, now);
        for label in self.unanswered(worker) {
            // What was lost with a whole process is found in the store that it left.
            self.deeds(&label).lost += u32::from(!self.embedded);
        }
    }

    /// A worker left. Nobody may hear of it, and what was on its way to it then counts as lost.
    pub fn leaves(&mut self, worker: &Name, now: Moment) {
        self.turns(worker, now);
        for label in self.unanswered(worker) {
            self.deeds(&label).maybe_lost += 1;
        }
    }

    /// What a worker was handed and will not answer for any more.
    fn unanswered(&mut self, worker: &Name) -> Vec<String> {
        let handed = self.handed.values_mut().filter(|handed| handed.worker == *worker && !handed.answered);
        handed
            .map(|handed| {
                handed.answered = true;
                handed.label.clone()
            })
            .collect()
    }

    /// A worker ends an attempt whose lease nobody renewed. If nobody could, that is not held against its task.
    pub fn gives_up(&mut self, lease: Lease) {
        if let Some(label) = self.handed.get(&lease).map(|handed| handed.label.clone()) {
            self.deeds(&label).given_up += 1;
        }
    }

    pub fn may_be_lost(&mut self, label: &str) {
        self.deeds(label).maybe_lost += 1;
    }

    pub fn turns(&mut self, worker: &Name, now: Moment) {
        self.turned.insert(worker.clone(), now);
    }

    /// A new process runs under the worker's name.
    pub fn came_back(&mut self, worker: &Name) {
        if self.shut_down.remove(worker).is_some() {
            self.test("I17");
        }
    }

    pub fn shut_down(&mut self, worker: &Name, now: Moment) {
        self.turned.insert(worker.clone(), now);
        self.shut_down.insert(worker.clone(), now);
    }
}
