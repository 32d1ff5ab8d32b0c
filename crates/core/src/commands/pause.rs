//! Pausing and resuming: a limit, an action, or a run (or job). What runs goes on; nothing of it starts.

use crate::admission::LimitKey;
use crate::core::Core;
use crate::ids::{NodeId, TaskId};
use crate::names;
use crate::nodes::Node;
use crate::protocol::{Answer, Pausable, Refusal, Write};
use crate::time::Moment;

impl Core {
    pub(crate) fn pause(&mut self, what: Pausable, now: Moment) -> Result<Answer, Refusal> {
        self.set_paused(what, true, now)
    }

    pub(crate) fn resume(&mut self, what: Pausable, now: Moment) -> Result<Answer, Refusal> {
        self.set_paused(what, false, now)
    }

    fn set_paused(&mut self, what: Pausable, paused: bool, now: Moment) -> Result<Answer, Refusal> {
        names::of_pause(&what)?;
        match what {
            Pausable::Limit(key) => self.set_limit_paused(key, paused, now),
            // An action without a limit gets one without bound, so that there is something to close.
            Pausable::Action(action) => self.set_limit_paused(LimitKey::Action(action), paused, now),
            Pausable::Node(node) => self.set_node_paused(node, paused, now)?,
        }
        Ok(Answer::Done)
    }

    fn set_limit_paused(&mut self, key: LimitKey, paused: bool, now: Moment) {
        self.catalog.settings.entry(key.clone()).or_default().paused = paused;
        if let Some(limit) = self.admission.find(&key) {
            self.admission.set_paused(limit, paused, now);
        }
        self.setting_changed(key, now);
    }

    fn set_node_paused(&mut self, node: NodeId, paused: bool, now: Moment) -> Result<(), Refusal> {
        let was = match self.nodes.get(&node) {
            Some(Node::Job(job)) => job.paused,
            Some(Node::Run(run)) => run.paused,
            _ => return Err(Refusal::UnknownTask(TaskId::node(node))),
        };
        if was == paused {
            return Ok(());
        }
        let family = self.family(node);
        if paused {
            family.iter().for_each(|&member| self.step_out(member, now));
        }
        match self.nodes.get_mut(&node) {
            Some(Node::Job(job)) => job.paused = paused,
            Some(Node::Run(run)) => run.paused = paused,
            _ => {}
        }
        if !paused {
            family.iter().for_each(|&member| self.step_in(member));
        }
        self.write(Write::Paused { node, paused });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::ids::{NodeId, TaskId};
    use crate::protocol::{Answer, Command, Evaluation, Pausable, Refusal};
    use crate::testkit::{Kit, flow, rendered, step};

    #[test]
    fn only_jobs_and_runs_can_be_paused() {
        let mut kit = Kit::new(1);
        kit.declare(vec![flow("one", vec![step("a")])], Vec::new(), None);
        let run = kit.run("one");
        kit.answer_step(run, 0, Evaluation::Order(rendered(None)));
        for node in [run.step(0), NodeId(99)] {
            let unknown = Refusal::UnknownTask(TaskId::node(node));
            assert_eq!(kit.refused(Command::Pause(Pausable::Node(node))), unknown);
            assert_eq!(kit.refused(Command::Resume(Pausable::Node(node))), unknown);
        }
    }

    #[test]
    fn pausing_what_is_paused_writes_nothing() {
        let mut kit = Kit::new(0);
        let job = kit.job("work");
        for paused in [Command::Pause as fn(_) -> _, Command::Resume] {
            assert_eq!(kit.apply(paused(Pausable::Node(job))), Answer::Done);
            assert_eq!(kit.writes.len(), 1);
            assert_eq!(kit.apply(paused(Pausable::Node(job))), Answer::Done);
            assert_eq!(kit.writes, []);
        }
    }
}
