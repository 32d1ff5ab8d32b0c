//! A worker leaves. It runs nothing any more: what it did not hand back never reached it, and costs nothing.

use crate::core::Core;
use crate::protocol::{Answer, Leave, Refusal};
use crate::time::Moment;

impl Core {
    pub(crate) fn leave(&mut self, leave: Leave, now: Moment) -> Result<Answer, Refusal> {
        if self.workers.get(&leave.worker).is_none_or(|worker| worker.incarnation != leave.incarnation) {
            return Err(Refusal::UnknownWorker(leave.worker));
        }
        self.excuse(&leave.worker);
        self.lose_worker(&leave.worker, now);
        Ok(Answer::Done)
    }
}

#[cfg(test)]
mod tests {
    use crate::protocol::{Answer, Command, Leave, Refusal};
    use crate::testkit::{Kit, WORKER};

    #[test]
    fn only_who_is_there_can_leave() {
        let mut kit = Kit::new(1);
        let leave = |worker: &str, incarnation| Command::Leave(Leave { worker: worker.into(), incarnation });
        assert_eq!(kit.refused(leave(WORKER, 2)), Refusal::UnknownWorker(WORKER.into()));
        assert_eq!(kit.refused(leave("v", 1)), Refusal::UnknownWorker("v".into()));
        assert_eq!(kit.apply(leave(WORKER, 1)), Answer::Done);
        assert_eq!(kit.refused(leave(WORKER, 1)), Refusal::UnknownWorker(WORKER.into()));
        assert_eq!(kit.core.next_wake(), None, "nobody is watched any more");
        assert!(kit.core.admission.slots().get(WORKER).is_none(), "and nothing of it is remembered");
    }
}
