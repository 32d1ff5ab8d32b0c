//! The life of an attempt: asked for, granted, ended, and what then becomes of its task.

use crate::admission::{ClassId, Gauge, Grant};
use crate::catalog::{AttemptSource, Source};
use crate::core::Core;
use crate::ids::{Name, NodeId, TaskId};
use crate::model::{Action, MAX_LOSSES, ONCE, Requirement, Retry, Step, Work as StepWork, queue_of};
use crate::nodes::{Kind, Node, Running, Work, WorkState};
use crate::planted::Bug;
use crate::protocol::{Effect, GrantRow, Lease, Pace, Payload, Stop, Tally, Write};
use crate::state::State;
use crate::time::{Moment, Span};
use crate::timers::Alarm;
use std::sync::Arc;

/// What bounds the attempts of a task.
pub(crate) struct Terms<'a> {
    pub retry: &'a Retry,
    pub max_losses: u32,
    pub timeout: Option<Span>,
}

/// What becomes of a task whose attempt is over.
pub(crate) enum Verdict {
    End {
        state: State,
        output: Option<Payload>,
        error: Option<String>,
    },
    /// In line again, at its old place, now or at a time.
    Again {
        due: Option<Moment>,
        error: Option<String>,
    },
}

impl Core {
    pub(crate) fn work(&self, task: TaskId) -> Option<&Work> {
        self.nodes.get(&task.node)?.work(task)
    }

    pub(crate) fn work_mut(&mut self, task: TaskId) -> Option<&mut Work> {
        self.nodes.get_mut(&task.node)?.work_mut(task)
    }

    /// The definition of a step that is open.
    pub(crate) fn step_model(&self, node: NodeId) -> Option<&Step> {
        let step = self.step(node)?;
        self.run(step.run)?.plan.flow.steps.get(step.index as usize)
    }

    /// What a step says, part by part; then what its action says.
    pub(crate) fn terms(&self, node: NodeId) -> Terms<'_> {
        let step = self.step_model(node);
        let action = self
            .action_of(node)
            .and_then(|action| self.catalog.definition(action))
            .map(|action| &action.policy);
        Terms {
            retry: step
                .and_then(|step| step.retry.as_ref())
                .or(action.map(|policy| &policy.retry))
                .unwrap_or(&ONCE),
            max_losses: step
                .and_then(|step| step.max_losses)
                .or(action.map(|policy| policy.max_losses))
                .unwrap_or(MAX_LOSSES),
            timeout: step.and_then(|step| step.timeout).or(action.and_then(|policy| policy.timeout)),
        }
    }

    /// The action that a task executes, if it is one.
    pub(crate) fn action_of(&self, node: NodeId) -> Option<&Name> {
        match self.nodes.get(&node)? {
            Node::Job(job) => Some(&job.action),
            _ => match &self.step_model(node)?.work {
                StepWork::Action { action, .. } => Some(action),
                _ => None,
            },
        }
    }

    /// The action that a step calls, as it was when the run began.
    pub(crate) fn definition_for(&self, step: NodeId) -> Option<&Arc<Action>> {
        let run = self.run(self.step(step)?.run)?;
        self.catalog.definition_at(self.action_of(step)?, run.version)
    }

    pub(crate) fn job_source(
        &self,
        action: &Name,
        key: &Option<Name>,
        queue: Option<&Name>,
    ) -> AttemptSource {
        let policy = self.catalog.action(action);
        AttemptSource {
            action: Some(action.clone()),
            key: self.catalog.key_that_counts(action, key),
            pools: policy.pools.clone(),
            needs: policy.needs.clone().submitted_to(queue),
            window: None,
        }
    }

    pub(crate) fn step_source(&self, node: NodeId, key: &Option<Name>) -> Option<Source> {
        let run = self.step(node)?.run;
        let mut source = self.work_source(self.step_model(node)?, node, key);
        if let Source::Attempt(source) = &mut source {
            if let Some(action) = self.definition_for(node) {
                source.needs.runner = action.policy.needs.runner.clone();
            }
            source.needs = source.needs.clone().submitted_to(self.queue_of_root(run));
        }
        Some(source)
    }

    /// What every attempt of a step, or every item of its loop, is resolved from, whoever submitted its run.
    pub(crate) fn work_source(&self, step: &Step, node: NodeId, key: &Option<Name>) -> Source {
        match (&step.work, step.window()) {
            (StepWork::Flow { .. }, Some(window)) => Source::Window { step: node, window },
            _ => Source::Attempt(self.attempt_source(step, node, key)),
        }
    }

    fn attempt_source(&self, step: &Step, node: NodeId, key: &Option<Name>) -> AttemptSource {
        let window = step.window().map(|window| (node, window));
        let (mut pools, mut needs) = (step.pools.clone(), step.needs.clone());
        let mut source_key = None;
        let action = match &step.work {
            StepWork::Action { action, .. } => {
                let policy = self.catalog.action(action);
                pools.extend(policy.pools.iter().cloned());
                needs = if needs == Requirement::process() {
                    policy.needs.clone()
                } else {
                    Requirement { runner: policy.needs.runner.clone(), ..needs }
                };
                source_key = self.catalog.key_that_counts(action, key);
                Some(action.clone())
            }
            _ => None,
        };
        AttemptSource { action, key: source_key, pools, needs, window }
    }

    /// The queue that what a run belongs to was submitted to.
    fn queue_of_root(&self, run: NodeId) -> Option<&Name> {
        let run = self.run(run)?;
        match run.parent {
            Some(outer) => self.queue_of_root(self.step(outer.node)?.run),
            None => queue_of(&run.tags),
        }
    }

    /// What the demands of a job, a plain step or an item that has a record are resolved from.
    pub(crate) fn source_of(&self, task: TaskId) -> Option<Source> {
        match self.nodes.get(&task.node)? {
            Node::Job(job) => Some(Source::Attempt(self.job_source(&job.action, &job.key, job.queue()))),
            Node::Step(step) => match &step.kind {
                Kind::Plain { key, .. } => self.step_source(task.node, key),
                Kind::Loop(items) => self.step_source(task.node, &items.items.get(&task.index()?)?.key),
                _ => None,
            },
            Node::Run(_) => None,
        }
    }

    /// Puts a task in line, at its rank. While its run is paused it waits outside.
    pub(crate) fn enqueue(&mut self, task: TaskId, source: Source) -> ClassId {
        let class = self.class_for(source);
        self.enqueue_in(task, class);
        class
    }

    pub(crate) fn enqueue_in(&mut self, task: TaskId, class: ClassId) {
        if self.is_paused(task.node) {
            self.left(class);
        } else {
            let rank = self.rank(task);
            self.admission.enqueue(class, rank, 1);
        }
    }

    /// Takes a waiting task out of the line it may stand in.
    pub(crate) fn withdraw(&mut self, task: TaskId, class: ClassId, now: Moment) {
        if self.classes.entry(class).is_none() {
            return;
        }
        let rank = self.rank(task);
        self.admission.withdraw(class, rank, now);
        self.left(class);
    }

    // ---- starting

    pub(crate) fn granted(&mut self, grant: Grant, now: Moment) {
        let task = grant.rank.task();
        let is_item = task.index().is_some();
        match self.nodes.get(&task.node) {
            Some(Node::Run(_)) => self.enter_run(task.node, now),
            Some(Node::Step(step)) if !step.entered && !is_item => self.enter_step(task.node, now),
            Some(_) => {
                if let Some(index) = task.index() {
                    self.open_item(task.node, index, grant.class, now);
                }
                if self.is_stopping(task.node) {
                    self.turn_away(task, grant, now);
                } else if self.called_flow(task.node).is_some() {
                    self.start_item_flow(task, grant.class, now);
                } else {
                    self.begin(task, grant, now);
                }
            }
            None => debug_assert!(self.planted.is_any(), "granted {task:?}, which is not open"),
        }
    }

    /// Whether the loop or a run around a task is being stopped. That goes in slices, and nothing of it may start in
    /// between.
    fn is_stopping(&self, node: NodeId) -> bool {
        let Some(step) = self.step(node) else { return false };
        let Some(run) = self.run(step.run) else { return false };
        let of_loop = matches!(&step.kind, Kind::Loop(items) if items.stop.is_some());
        of_loop || run.stop.is_some() || run.parent.is_some_and(|outer| self.is_stopping(outer.node))
    }

    /// What was granted is given back, and its task ends. Whatever stops a run, its steps were cancelled.
    fn turn_away(&mut self, task: TaskId, grant: Grant, now: Moment) {
        self.release(grant.class, grant.worker.as_ref());
        self.end_task(task, State::Cancelled, None, None, now);
    }

    fn begin(&mut self, task: TaskId, grant: Grant, now: Moment) {
        let Some(worker) = grant.worker else { return };
        let epoch = self.next_epoch();
        let entry = self.classes.entry(grant.class);
        let length = entry.map_or(crate::model::LEASE, |entry| entry.lease);
        let is_function = entry.is_some_and(|entry| entry.source.is_function());
        let until = now + length;
        let timeout = self.terms(task.node).timeout.map(|timeout| now + timeout);
        let Some(since) = self.work(task).map(|work| work.since) else { return };
        self.count_start(task, grant.class, since, now);
        let Some(work) = self.work_mut(task) else { return };
        work.class = grant.class;
        work.since = now;
        work.tally.started += 1;
        let number = work.tally.started;
        work.at = WorkState::Running(Box::new(Running {
            epoch,
            worker: worker.clone(),
            granted: now,
            until,
            length,
            timeout,
            stop: None,
            missing: 0,
            excused: false,
            unclaimed: false,
            received: false,
        }));
        if let Some(at) = timeout {
            self.timers.set(at, task, Alarm::Timeout);
        }
        if let Some(worker) = self.workers.get_mut(&worker) {
            worker.attempts.insert(task, epoch);
        }
        self.workers.check_by(&worker, until);
        if number == 1 {
            self.started_first(task.node);
        }
        let order = self.resident_order(task);
        let row = GrantRow { epoch, worker: worker.clone(), at: now, until, length };
        self.write(Write::Granted { task, grant: row, number });
        let is_paced = self.write_paces(grant.class);
        let ahead = is_function && !is_paced;
        let lease = Lease { task, epoch };
        self.effect(Effect::Deliver { worker, lease, order, length, number, at: now, ahead });
    }

    /// A task's first start: it can no longer expire, and counts no more for the length of its line.
    fn started_first(&mut self, node: NodeId) {
        let start_by = match self.nodes.get_mut(&node) {
            Some(Node::Job(job)) => {
                let (action, start_by) = (job.action.clone(), job.start_by.take());
                self.left_line(&action, node);
                start_by
            }
            Some(Node::Step(step)) => step.start_by.take(),
            _ => None,
        };
        if let Some(at) = start_by {
            self.timers.clear(at, TaskId::node(node), Alarm::StartBy);
        }
    }

    pub(crate) fn resident_order(&self, task: TaskId) -> Option<Payload> {
        match self.nodes.get(&task.node)? {
            Node::Job(job) => job.order.clone(),
            Node::Step(step) => match &step.kind {
                Kind::Plain { order, .. } => order.clone(),
                Kind::Loop(items) => items.orders.get(&task.index()?).cloned(),
                _ => None,
            },
            Node::Run(_) => None,
        }
    }

    /// A grant that took from a rate or quota writes down what is left of it. Says whether it did.
    fn write_paces(&mut self, class: ClassId) -> bool {
        let mut is_paced = false;
        for i in 0..self.admission.class(class).demands.len() {
            let limit = self.admission.limit(self.admission.class(class).demands[i].limit);
            let pace = match &limit.gauge {
                Gauge::Rate(rate) => Pace::Rate(rate.clone()),
                Gauge::Quota(quota) => Pace::Quota(quota.clone()),
                _ => continue,
            };
            let key = limit.key.clone();
            self.write(Write::PaceTaken { key, pace });
            is_paced = true;
        }
        is_paced
    }

    // ---- stopping and ending

    /// Tells a running task's worker to stop it. It holds what it has until that is confirmed or the lease ends.
    pub(crate) fn stop_running(&mut self, task: TaskId, why: Stop, now: Moment) {
        let Some(running) = self.work_mut(task).and_then(Work::running_mut) else { return };
        if !running.is_news(why) {
            return;
        }
        let is_told = running.stop.replace(why).is_some();
        let (worker, lease) = (running.worker.clone(), Lease { task, epoch: running.epoch });
        self.write(Write::Stopping { task, why, error: None, at: now });
        if !is_told {
            self.effect(Effect::Stop { worker, lease });
        }
    }

    /// Stops a task, whatever it is doing: a running one is told to, any other ends at once.
    pub(crate) fn stop_work(&mut self, task: TaskId, why: Stop, now: Moment) {
        match self.work(task).map(|work| &work.at) {
            Some(WorkState::Running(_)) => self.stop_running(task, why, now),
            Some(WorkState::Inside(run)) => self.stop_inside(*run, why, now),
            Some(WorkState::Scheduled(_) | WorkState::Waiting) => {
                self.end_waiting(task, why.end(), None, now);
            }
            None => {}
        }
    }

    /// Ends a task that is not running.
    pub(crate) fn end_waiting(&mut self, task: TaskId, state: State, error: Option<String>, now: Moment) {
        let Some(work) = self.work(task) else { return };
        let class = work.class;
        match work.at {
            WorkState::Scheduled(due) => self.timers.clear(due, task, Alarm::Due),
            WorkState::Waiting => self.withdraw(task, class, now),
            WorkState::Running(_) | WorkState::Inside(_) => return,
        }
        self.end_task(task, state, None, error, now);
    }

    /// Ends a root task that has never started.
    pub(crate) fn end_unstarted(&mut self, node: NodeId, state: State, error: Option<String>, now: Moment) {
        match self.nodes.get(&node) {
            Some(Node::Job(_)) => self.end_waiting(TaskId::node(node), state, error, now),
            Some(Node::Run(_)) => self.end_waiting_run(node, state, error, now),
            _ => {}
        }
    }

    /// The attempt is over: gives back what it held, then ends its task or puts it in line again.
    pub(crate) fn conclude(&mut self, task: TaskId, tally: Tally, verdict: Verdict, now: Moment) {
        let Some(work) = self.work_mut(task) else { return };
        let WorkState::Running(running) = std::mem::replace(&mut work.at, WorkState::Waiting) else { return };
        let (class, ran) = (work.class, now.since(running.granted));
        work.tally = tally;
        work.since = now;
        if let Some(at) = running.timeout {
            self.timers.clear(at, task, Alarm::Timeout);
        }
        let leaks = self.planted.has(Bug::CancelLeaksSlot) && running.stop == Some(Stop::Cancelled);
        match verdict {
            Verdict::End { state, output, error } => {
                if state == State::Succeeded {
                    self.note_duration(task.node, ran);
                }
                if !leaks {
                    self.give_back(task, class, &running.worker, now);
                }
                self.end_task(task, state, output, error, now);
            }
            Verdict::Again { due, error } => {
                let source = self.source_of(task);
                self.give_back(task, class, &running.worker, now);
                self.again(task, source, due, error, now);
            }
        }
    }

    fn give_back(&mut self, task: TaskId, class: ClassId, worker: &Name, now: Moment) {
        self.release(class, Some(worker));
        if let Some(record) = self.workers.get_mut(worker) {
            record.attempts.remove(&task);
            if !record.connected && record.attempts.is_empty() {
                self.workers.remove(worker);
                self.admission.remove_worker(worker, now);
            }
        }
    }

    fn again(
        &mut self,
        task: TaskId,
        source: Option<Source>,
        due: Option<Moment>,
        error: Option<String>,
        now: Moment,
    ) {
        if self.planted.has(Bug::RetryLosesPlace) {
            let last = self.next_number();
            if let Some(Node::Job(job)) = self.nodes.get_mut(&task.node) {
                job.root = last;
            }
        }
        let Some(work) = self.work_mut(task) else { return };
        let tally = work.tally;
        let state = match due {
            Some(due) => {
                work.at = WorkState::Scheduled(due);
                self.timers.set(due, task, Alarm::Due);
                State::Scheduled
            }
            None => {
                self.queue_again(task, source);
                State::Waiting
            }
        };
        self.write(Write::Moved { task, state, due, tally, error, at: now });
    }

    /// A task that has been in line before stands there again, at its old rank.
    pub(crate) fn queue_again(&mut self, task: TaskId, source: Option<Source>) {
        let Some(source) = source else { return };
        let class = self.enqueue(task, source);
        if let Some(work) = self.work_mut(task) {
            work.class = class;
            work.at = WorkState::Waiting;
        }
    }

    pub(crate) fn end_task(
        &mut self,
        task: TaskId,
        state: State,
        output: Option<Payload>,
        error: Option<String>,
        now: Moment,
    ) {
        self.count_end(task.node, state);
        match (self.nodes.get(&task.node), task.index()) {
            (Some(Node::Job(_)), _) => {
                self.write(Write::Ended { task, state, output, error, at: now });
                self.forget_job(task.node);
            }
            (Some(Node::Step(_)), None) => self.end_step(task.node, state, output, error, now),
            (Some(Node::Step(_)), Some(index)) => self.end_item(task.node, index, state, output, error, now),
            _ => {}
        }
    }

    fn forget_job(&mut self, node: NodeId) {
        let Some(Node::Job(job)) = self.nodes.remove(&node) else { return };
        if let Some(at) = job.start_by {
            self.timers.clear(at, TaskId::node(node), Alarm::StartBy);
        }
        if job.work.tally.started == 0 {
            self.left_line(&job.action, node);
        }
        self.forget_id(job.id.into(), job.idempotency());
    }
}
