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
