//! A submission that was left in a mailbox. Nobody waits for its answer, so what cannot be accepted is kept as a task
//! that ended `refused`, with the reason.

use crate::core::Core;
use crate::protocol::{Answer, Body, JobBody, Life, NodeRow, RunBody, Submission, Submit, Write};
use crate::state::State;
use crate::time::Moment;

impl Core {
    pub(crate) fn post(&mut self, submit: Submit, flaw: Option<String>, now: Moment) -> Answer {
        if let Some(&node) = self.by_id.get(&submit.id) {
            return Answer::Accepted { node, again: true };
        }
        let reason = match flaw {
            Some(flaw) => flaw,
            None => match self.submit(submit.clone(), now) {
                Ok(answer) => return answer,
                Err(refusal) => refusal.to_string(),
            },
        };
        self.add_refused(submit, reason, now);
        Answer::Done
    }

    /// Its key stays free: whoever posts again what was refused means it.
    fn add_refused(&mut self, submit: Submit, reason: String, now: Moment) {
        let Submit { id, what, tags, priority, .. } = submit;
        let (body, payload) = match what {
            Submission::Job { action, key, order } => {
                (Body::Job(JobBody { id, action, key, tags, start_by: None, idempotency: None }), order)
            }
            Submission::Run { flow, key, inputs } => {
                let (id, version) = (Some(id), self.catalog.version);
                let body = RunBody { id, flow, version, depth: 0, key, tags, idempotency: None };
                (Body::Run(body), inputs)
            }
        };
        let node = self.take_numbers(0);
        let life = Life { ended: Some(now), error: Some(reason), ..Life::new(State::Refused) };
        let (root, accepted, payload) = (node.0, now, Some(payload));
        self.write(Write::NodeAdded(Box::new(NodeRow {
            node,
            parent: None,
            root,
            priority,
            accepted,
            body,
            payload,
            life,
        })));
    }
}

#[cfg(test)]
mod tests {
    use crate::protocol::{Answer, Body, Command, NodeRow, Submit, Write};
    use crate::state::State;
    use crate::testkit::{Kit, job, run};

    fn post(submit: Submit, flaw: Option<&str>) -> Command {
        Command::Post { submit, flaw: flaw.map(str::to_owned) }
    }

    fn refused(kit: &Kit) -> &NodeRow {
        let [Write::NodeAdded(row)] = &kit.writes[..] else { panic!("{:?}", kit.writes) };
        assert_eq!((row.life.state, row.life.ended), (State::Refused, Some(kit.now)));
        row
    }

    #[test]
    fn what_can_be_accepted_is_submitted() {
        let mut kit = Kit::new(1);
        let submit = kit.submit(job("work"));
        let Answer::Accepted { node, again: false } = kit.apply(post(submit.clone(), None)) else { panic!() };
        assert_eq!(kit.core.node_of(submit.id), Some(node));
        let again = kit.apply(post(submit, Some("whatever")));
        assert_eq!((again, kit.writes.len()), (Answer::Accepted { node, again: true }, 0), "done once");
    }

    #[test]
    fn what_is_refused_is_kept_with_the_reason_and_leaves_its_key_free() {
        let mut kit = Kit::new(1);
        let submit = kit.submit(run("nowhere")).under("once");
        assert_eq!(kit.apply(post(submit.clone(), None)), Answer::Done);
        assert_eq!(refused(&kit).life.error.as_deref(), Some("there is no flow `nowhere`"));
        assert!(matches!(&refused(&kit).body, Body::Run(run) if run.id == Some(submit.id)));
        assert!(kit.core.is_idle());

        let submit = kit.submit(job("work")).under("once");
        assert_eq!(kit.apply(post(submit, Some("`count` is not a number"))), Answer::Done);
        assert_eq!(refused(&kit).life.error.as_deref(), Some("`count` is not a number"));
        let submit = kit.submit(job("work")).under("once");
        assert!(matches!(kit.apply(post(submit, None)), Answer::Accepted { again: false, .. }));
    }
}
