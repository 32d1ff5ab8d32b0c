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

#[cfg(test)]
mod tests {
    use crate::ids::{NodeId, TaskId};
    use crate::model::Work;
    use crate::protocol::{Answer, Command, Evaluation, Payload, Refusal, Write};
    use crate::testkit::{Kit, doing, flow, step, template};

    #[test]
    fn only_roots_have_a_priority_of_their_own_and_all_inside_follow() {
        let mut kit = Kit::new(1);
        let sub = doing("sub", Work::Flow { flow: "inner".into(), inputs: template() });
        kit.declare(vec![flow("inner", vec![step("a")]), flow("outer", vec![sub])], Vec::new(), None);
        let run = kit.run("outer");
        kit.answer_step(run, 0, Evaluation::SubFlow { inputs: Payload::new("{}") });
        let inner = NodeId(run.0 + 2);
        for node in [inner, run.step(0), NodeId(99)] {
            let refusal = kit.refused(Command::SetPriority { node, priority: 1 });
            assert_eq!(refusal, Refusal::UnknownTask(TaskId::node(node)));
        }
        assert_eq!(kit.apply(Command::SetPriority { node: run, priority: 7 }), Answer::Done);
        let ranked = |node| Write::Ranked { node, priority: 7, root: run.0 };
        assert_eq!(kit.writes, [ranked(run), ranked(inner)]);
    }
}
