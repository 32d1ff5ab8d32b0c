//! A submission that was left in a mailbox. Nobody waits for its answer, so what cannot be accepted is kept as a task
//! that ended `refused`, with the reason.

use crate::core::Core;
use crate::protocol::{
    Answer, Body, JobBody, Life, NodeRow, RunBody, Submission, Submit, Write, check_size, cut,
};
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
        self.add_refused(submit, cut(reason), now);
        Answer::Done
    }

    /// Its key stays free: whoever posts again what was refused means it. Of what is too large only the name is kept.
    fn add_refused(&mut self, submit: Submit, reason: String, now: Moment) {
        let fits = check_size(submit.size()).is_ok();
        let Submit { id, what, mut tags, priority, .. } = submit;
        tags.retain(|_| fits);
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
        let (root, accepted, payload) = (node.0, now, Some(payload).filter(|_| fits));
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
    use crate::protocol::{
        Answer, Body, Command, JobBody, LARGEST_PAYLOAD, LONGEST_ERROR, NodeRow, Payload, RunBody,
        Submission, Submit, Write,
    };
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

    #[test]
    fn of_what_is_too_large_only_the_reason_is_kept() {
        let mut kit = Kit::new(1);
        let large = || Payload::new(vec![b'1'; LARGEST_PAYLOAD]);
        let submit =
            |kit: &mut Kit, what| Submit { tags: vec![("a".into(), "b".into())], ..kit.submit(what) };
        let job = submit(&mut kit, Submission::Job { action: "work".into(), key: None, order: large() });
        let run = submit(&mut kit, Submission::Run { flow: "one".into(), key: None, inputs: large() });
        let too_large = "it is too large, it has 16.1 MiB and 16 MiB are allowed";
        let long = "x".repeat(2 * LONGEST_ERROR);
        for (submit, flaw, reason) in [(job, None, too_large), (run, Some(&*long), &long[..LONGEST_ERROR])] {
            assert_eq!(kit.apply(post(submit, flaw)), Answer::Done);
            let row = refused(&kit);
            assert!(row.life.error.as_ref().is_some_and(|error| error.starts_with(reason)));
            assert!(row.life.error.as_ref().is_some_and(|error| error.len() < reason.len() + 4));
            assert_eq!(row.payload, None);
            let (Body::Job(JobBody { tags, .. }) | Body::Run(RunBody { tags, .. })) = &row.body else {
                panic!("{:?}", row.body)
            };
            assert_eq!(*tags, []);
        }
        assert!(kit.core.is_idle());
    }
}
