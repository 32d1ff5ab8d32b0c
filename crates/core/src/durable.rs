//! A digest of everything that must survive a crash. A core that was loaded at an entry has the digest that the core
//! which wrote it had; what is only remembered (places in line, timers, questions asked) does not
//! count, nor do rates and quotas, which say less and less as time passes and are dropped when they say nothing.

use crate::core::Core;
use crate::ids::{Name, NodeId, RunId, TaskId};
use crate::nodes::{Job, Kind, Loop, Node, Run, RunState, Step, StepState, Work, WorkState};
use crate::protocol::{Idempotency, Stop, Tally};
use crate::state::State;
use crate::time::Moment;
use rustc_hash::FxHasher;
use std::hash::Hasher;

impl Core {
    /// The cost grows with what is open: this is for tests.
    pub fn durable_digest(&self) -> u64 {
        let mut digest = Sum::default();
        digest.number(self.next);
        // Added up, so that nothing has to be sorted.
        digest.number(self.nodes.iter().map(|(id, node)| Sum::of(id, node)).fold(0, u64::wrapping_add));
        for (key, setting) in &self.catalog.settings {
            digest.text(&format!("{key:?} {setting:?}"));
        }
        digest.number(u64::from(self.catalog.version));
        self.catalog.flow_versions().for_each(|(name, version)| {
            digest.text(name.as_str());
            digest.number(u64::from(version));
        });
        digest.finish()
    }
}

/// Quick, because it is taken at every commit; compared only within one build, so it may be another in the next.
#[derive(Default)]
struct Sum(FxHasher);

impl Sum {
    fn of(id: NodeId, node: &Node) -> u64 {
        let mut sum = Sum::default();
        sum.number(id.0);
        match node {
            Node::Job(job) => sum.job(job),
            Node::Run(run) => sum.run(run),
            Node::Step(step) => sum.step(step),
        }
        sum.finish()
    }

    fn number(&mut self, number: u64) {
        self.0.write_u64(number);
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.write(text.as_bytes());
    }

    fn text_or_nothing(&mut self, text: Option<&str>) {
        self.number(u64::from(text.is_some()));
        text.into_iter().for_each(|text| self.text(text));
    }

    fn finish(&self) -> u64 {
        self.0.finish()
    }
}

/// The durable part of each thing.
impl Sum {
    fn job(&mut self, job: &Job) {
        self.id(Some(job.id.into()));
        self.number(job.root);
        self.number(job.priority as u64);
        self.number(u64::from(job.paused));
        self.text(job.action.as_str());
        self.name(job.key.as_ref());
        self.name(job.queue());
        self.moment(Some(job.accepted));
        self.moment(job.start_by);
        self.idempotency(job.idempotency());
        self.work(&job.work);
    }

    fn run(&mut self, run: &Run) {
        self.id(run.id);
        self.task(run.parent);
        self.number(run.root);
        self.number(run.priority as u64);
        self.number(u64::from(run.paused));
        self.text(run.plan.flow.name.as_str());
        self.number(u64::from(run.version));
        self.name(run.key.as_ref());
        for (tag, value) in &run.tags {
            self.text(tag.as_str());
            self.text(value.as_str());
        }
        self.idempotency(run.idempotency.as_deref());
        self.state(run.state.state());
        self.moment(match run.state {
            RunState::Scheduled(due) => Some(due),
            RunState::Waiting | RunState::Running => None,
        });
        self.moment(run.deadline);
        self.stop(run.stop);
        for step in &run.steps {
            match step {
                // Steps of a run that stops have no row unless they were opened.
                StepState::Ended(State::Cancelled) if run.stop.is_some() => self.number(0),
                StepState::Ended(state) => self.state(*state),
                StepState::Open => self.number(1),
                // What a step that is not open waits for follows from the others.
                StepState::Blocked(_) | StepState::Ready | StepState::Asking => self.number(0),
            }
        }
        for (&index, &ran) in &run.reused {
            self.number(u64::from(index));
            self.node(Some(ran));
        }
    }

    fn step(&mut self, step: &Step) {
        self.node(Some(step.run));
        self.number(u64::from(step.index));
        self.number(u64::from(step.entered));
        self.moment(step.start_by);
        match &step.kind {
            Kind::Plain { key, work, tally, .. } => {
                self.name(key.as_ref());
                match work {
                    Some(work) => self.work(work),
                    None => self.tally(*tally),
                }
            }
            Kind::Loop(items) => self.items(items),
            Kind::SubFlow { child } => self.node(*child),
            Kind::Wait { until } => self.moment(Some(*until)),
        }
    }

    fn items(&mut self, items: &Loop) {
        self.number(u64::from(items.count));
        self.number(u64::from(items.expanded));
        self.number(u64::from(items.ended.succeeded));
        self.number(u64::from(items.ended.failed));
        self.number(u64::from(items.ended.cancelled));
        self.stop(items.stop);
        self.text_or_nothing(items.error.as_deref());
        self.number(u64::from(items.unstarted()));
        for (&index, item) in &items.items {
            self.number(u64::from(index));
            self.name(item.key.as_ref());
            self.work(&item.work);
        }
    }

    fn work(&mut self, work: &Work) {
        self.tally(work.tally);
        self.state(work.state());
        match &work.at {
            WorkState::Scheduled(due) => self.moment(Some(*due)),
            WorkState::Waiting => {}
            WorkState::Running(running) => {
                self.number(u64::from(running.epoch.incarnation));
                self.number(running.epoch.grant);
                self.text(running.worker.as_str());
                self.moment(Some(running.until));
                self.number(running.length.0);
                self.moment(running.timeout);
                self.stop(running.stop);
            }
            WorkState::Inside(run) => self.node(Some(*run)),
        }
    }

    fn tally(&mut self, tally: Tally) {
        [tally.started, tally.failures, tally.losses]
            .into_iter()
            .for_each(|count| self.number(u64::from(count)));
    }

    fn idempotency(&mut self, idempotency: Option<&Idempotency>) {
        self.name(idempotency.map(|idempotency| &idempotency.key));
        self.number(idempotency.map_or(0, |idempotency| idempotency.content));
    }

    fn state(&mut self, state: State) {
        self.text(state.as_str());
    }

    fn stop(&mut self, stop: Option<Stop>) {
        self.number(stop.map_or(0, |stop| 1 + stop as u64));
    }

    fn name(&mut self, name: Option<&Name>) {
        self.text_or_nothing(name.map(Name::as_str));
    }

    fn moment(&mut self, moment: Option<Moment>) {
        self.number(moment.map_or(u64::MAX, |moment| moment.0.cast_unsigned()));
    }

    fn task(&mut self, task: Option<TaskId>) {
        self.node(task.map(|task| task.node));
        self.number(task.and_then(TaskId::index).map_or(u64::MAX, u64::from));
    }

    fn node(&mut self, node: Option<NodeId>) {
        self.number(node.map_or(u64::MAX, |node| node.0));
    }

    fn id(&mut self, id: Option<RunId>) {
        self.0.write_u128(id.map_or(0, |id| id.0));
    }
}
