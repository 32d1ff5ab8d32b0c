//! Workers: what each can do, and what it has.

use crate::admission::{Skills, SlotCounts};
use crate::core::Core;
use crate::ids::{Epoch, Name};
use crate::nodes::Work;
use crate::time::{Moment, Span};
use serde::{Deserialize, Serialize};

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct WorkerView {
    pub name: Name,
    pub incarnation: u64,
    /// It may be given something: it has not left, and was heard of.
    pub connected: bool,
    /// When it was last heard of.
    pub seen: Moment,
    /// What it said of itself when it joined; nothing if it has gone since.
    pub skills: Option<Skills>,
    pub slots: SlotCounts,
    pub busy: SlotCounts,
    pub attempts: Vec<AttemptView>,
}

/// What a worker has.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct AttemptView {
    pub name: String,
    pub epoch: Epoch,
    pub since: Moment,
    pub lease_left: Span,
    pub stopping: bool,
}

impl Core {
    /// All that are known, in the order of their names.
    pub fn workers_view(&self, now: Moment) -> Vec<WorkerView> {
        let view = |(name, worker): (&Name, &crate::workers::Worker)| {
            let known = self.admission.slots().get(name.as_str());
            let attempts = worker.attempts.iter().filter_map(|(&task, &epoch)| {
                let running = self.work(task).and_then(Work::running)?;
                Some(AttemptView {
                    name: self.name(task),
                    epoch,
                    since: running.granted,
                    lease_left: running.until.since(now),
                    stopping: running.stop.is_some(),
                })
            });
            WorkerView {
                name: name.clone(),
                incarnation: worker.incarnation,
                connected: worker.connected,
                seen: worker.seen,
                skills: known.map(|known| known.skills.clone()),
                slots: known.map(|known| known.slots).unwrap_or_default(),
                busy: known.map(|known| known.busy).unwrap_or_default(),
                attempts: attempts.collect(),
            }
        };
        self.workers.iter().map(view).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::testkit::{Kit, WORKER};

    #[test]
    fn a_worker_is_told_with_what_it_has() {
        let mut kit = Kit::new(1);
        let job = kit.job("work");
        let [worker] = &kit.core.workers_view(kit.now)[..] else { panic!("there is one worker") };
        assert_eq!((worker.name.as_str(), worker.connected), (WORKER, true));
        let name = kit.core.name(crate::ids::TaskId::node(job));
        assert_eq!(worker.attempts.iter().map(|attempt| &attempt.name).collect::<Vec<_>>(), [&name]);
    }
}
