//! A task gets another priority: it and all that belongs to it stand elsewhere in line, under the same sequence.

use crate::core::Core;
use crate::ids::NodeId;
use crate::nodes::Node;
use crate::protocol::{Answer, Refusal, Write};
use crate::time::Moment;

impl Core {
    pub(crate) fn set_priority(
        &mut self,
        node: NodeId,
        priority: i8,
        now: Moment,
    ) -> Result<Answer, Refusal> {
        let root = match self.nodes.get(&node) {
            Some(Node::Job(job)) => job.root,
            Some(Node::Run(run)) if run.parent.is_none() => run.root,
            _ => return Err(Refusal::UnknownTask(crate::ids::TaskId::node(node))),
        };
        let family = self.family(node);
        for &member in &family {
            self.step_out(member, now);
        }
        for &member in &family {
            match self.nodes.get_mut(&member) {
                Some(Node::Job(job)) => job.priority = priority,
                Some(Node::Run(run)) => run.priority = priority,
                _ => continue,
            }
            self.write(Write::Ranked { node: member, priority, root });
        }
        for &member in &family {
            self.step_in(member);
        }
        Ok(Answer::Done)
    }
}
