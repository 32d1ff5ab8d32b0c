//! A core from what a store has. Places in line are not stored: everybody asks anew, in the order of ranks, so a
//! crash may change the order between classes and never within one.

use crate::admission::{ClassId, Gauge, Rules, Skills, SlotCounts};
use crate::catalog::{Setting, Source};
use crate::core::Core;
use crate::ids::{Name, NodeId, TaskId};
use crate::model::LEASE;
use crate::nodes::{Item, Kind, Loop, Node, RunState, Running, Step, StepState, Work, WorkState};
use crate::planted::Bug;
use crate::protocol::{
    ActionRow, Body, DeclaredRow, ItemRow, ItemRunBody, JobBody, Life, NodeRow, Pace, RunBody, Snapshot,
    StepBody, StepKind, Tally,
};
use crate::state::State;
use crate::time::Moment;
use crate::timers::Alarm;
use crate::workers::UNKNOWN;

#[cfg(test)]
mod tests;

impl Core {
    /// The core that goes on from here. It may have something to write and to do at once.
    pub fn load(snapshot: Snapshot, incarnation: u32, now: Moment) -> Core {
        Core::with_rules(incarnation, Rules::default()).loaded(snapshot, now)
    }

    /// The same for a core that was prepared otherwise: with other rules, or a planted bug.
    pub fn loaded(mut self, snapshot: Snapshot, now: Moment) -> Core {
        let now = now.max(snapshot.now);
        self.now = now;
        self.next = snapshot.next.max(1);
        self.load_definitions(&snapshot, now);
        for worker in snapshot.workers {
            self.workers.insert(&worker.worker, worker.incarnation, now, now + LEASE);
            self.admission.set_worker(&worker.worker, worker.skills, worker.slots, now);
        }
        let rows: Vec<(NodeId, bool)> =
            snapshot.nodes.iter().map(|row| (row.node, !row.life.state.is_end())).collect();
        for row in snapshot.nodes {
            self.load_node(row, now);
        }
        for (node, (rows, tally)) in snapshot.loops {
            if let Some(items) = self.loop_mut(node) {
                items.expanded = rows;
                items.ended = tally;
            }
        }
        self.load_items(snapshot.items, now);
        for (node, open) in rows {
            if open {
                self.resume_node(node, now);
            }
        }
        self.begin_grace(now);
        self
    }

    fn load_definitions(&mut self, snapshot: &Snapshot, now: Moment) {
        for row in &snapshot.declared {
            match row.clone() {
                DeclaredRow::Flow { version, flow } => self.catalog.add_flow(version, flow),
                DeclaredRow::Action(ActionRow { version, action }) => {
                    self.catalog.set_action(version, action)
                }
                DeclaredRow::Limits(limits) => self.catalog.limits = limits,
            }
        }
        for row in &snapshot.limits {
            if let Some(until) = row.set.as_ref().and_then(|set| set.until) {
                self.override_ends.insert((until, row.key.clone()));
            }
            self.catalog
                .settings
                .insert(row.key.clone(), Setting { set: row.set.clone(), paused: row.paused });
        }
        for (key, pace) in &snapshot.paces {
            let gauge = match pace.clone() {
                Pace::Rate(rate) => Gauge::Rate(rate),
                Pace::Quota(quota) => Gauge::Quota(quota),
            };
            self.admission.restore_pace(key, gauge);
        }
        self.admission.settle_wakes(now);
    }

    fn load_node(&mut self, row: NodeRow, now: Moment) {
        let around = row.around();
        let NodeRow { node, parent, root, priority, accepted, body, payload, life } = row;
        match body {
            Body::Job(body) => {
                let order = payload.as_ref();
                self.load_job(node, (root, priority, accepted), body, order, &life, now);
            }
            Body::Run(run) | Body::ItemRun(ItemRunBody { run, .. }) => {
                self.load_run(node, around, (root, priority, accepted), run, &life);
            }
            Body::Step(body) => {
                let Some(run) = parent else { return };
                if life.state.is_end() {
                    if let Some(record) = self.run_mut(run) {
                        match body.kind {
                            StepKind::Reused { of, .. } => record.reuse(body.index, life.state, of),
                            _ => record.end_step(body.index, life.state),
                        }
                        self.note_step_error(run, body.index, life.state, life.error.as_deref());
                    }
                } else {
                    self.load_step(node, run, accepted, body, payload, &life, now);
                }
            }
        }
    }

    fn load_job(
        &mut self,
        node: NodeId,
        (root, priority, accepted): (u64, i8, Moment),
        mut body: JobBody,
        order: Option<&crate::protocol::Payload>,
        life: &Life,
        now: Moment,
    ) {
        self.by_id.insert(body.id, node);
        if let Some(idempotency) = &body.idempotency {
            self.by_key.insert(idempotency.key.clone(), (node, idempotency.content));
        }
        if life.started.is_some() {
            body.start_by = None;
        }
        let action = body.action.clone();
        self.add_job(node, root, priority, &body, order, None, accepted);
        if life.started.is_some() {
            self.left_line(&action, node);
        }
        if let Some(Node::Job(job)) = self.nodes.get_mut(&node) {
            job.paused = life.paused;
        }
        self.load_work(TaskId::node(node), life, now);
    }

    fn load_run(
        &mut self,
        node: NodeId,
        around: Option<TaskId>,
        (root, priority, accepted): (u64, i8, Moment),
        body: RunBody,
        life: &Life,
    ) {
        if let Some(id) = body.id {
            self.by_id.insert(id, node);
        }
        if let Some(idempotency) = &body.idempotency {
            self.by_key.insert(idempotency.key.clone(), (node, idempotency.content));
        }
        self.add_run(node, root, priority, body, life.due, accepted);
        let Some(run) = self.run_mut(node) else { return };
        run.parent = around;
        run.paused = life.paused;
        run.stop = life.stop;
        if life.state == State::Running {
            run.state = RunState::Running;
            run.since = life.started.unwrap_or(accepted);
            run.deadline = run.plan.flow.timeout.map(|timeout| run.since + timeout);
        }
        if self.planted.has(Bug::StopForgottenAtLoad) {
            self.run_mut(node).into_iter().for_each(|run| run.stop = None);
        }
        if let Some(around) = around {
            self.load_inside(around, node, accepted);
        }
    }

    /// What is around a run knows which one it is. An item that has one is known by it, before its own row is seen.
    fn load_inside(&mut self, around: TaskId, run: NodeId, since: Moment) {
        if let Some(index) = around.index() {
            let source = self.loop_of(around.node).and_then(|_| self.step_source(around.node, &None));
            let Some(source) = source else { return };
            let class = self.class_for(source);
            self.admission.hold(class, None);
            let tally = Tally { started: 1, ..Tally::default() };
            let work = Work { class, tally, since, at: WorkState::Inside(run) };
            if let Some(items) = self.loop_mut(around.node) {
                items.items.insert(index, Item { work, key: None });
            }
        } else if let Some(Step { kind: Kind::SubFlow { child }, .. }) = self.step_mut(around.node) {
            *child = Some(run);
        }
    }

    #[allow(clippy::too_many_arguments, reason = "the parts of a row")]
    fn load_step(
        &mut self,
        node: NodeId,
        run: NodeId,
        accepted: Moment,
        body: StepBody,
        payload: Option<crate::protocol::Payload>,
        life: &Life,
        now: Moment,
    ) {
        let Some(record) = self.run_mut(run) else { return };
        record.steps[body.index as usize] = StepState::Open;
        let parallel = record.plan.flow.parallel_steps;
        let kind = match body.kind {
            StepKind::Plain { key } => Kind::Plain { key, order: payload, work: None, tally: life.tally },
            StepKind::Loop { count } => {
                let (stop, error) = (life.stop, life.error.clone());
                Kind::Loop(Box::new(Loop { count, stop, error, ..Loop::default() }))
            }
            StepKind::SubFlow => Kind::SubFlow { child: None },
            StepKind::Wait { until } => Kind::Wait { until },
            StepKind::Nothing | StepKind::Reused { .. } => return,
        };
        let parallel = parallel.filter(|_| kind.takes_a_place());
        let start_by = body.start_by.filter(|_| life.started.is_none());
        let entered = life.entered || parallel.is_none();
        let step = Step { run, index: body.index, start_by, class: None, entered, kind, since: accepted };
        self.nodes.insert(node, Node::Step(Box::new(step)));
        if let Some(at) = start_by {
            self.timers.set(at, TaskId::node(node), Alarm::StartBy);
        }
        if let Some(parallel) = parallel {
            let class = self.class_for(Source::Step { run, parallel });
            if entered {
                self.admission.hold(class, None);
            } else {
                self.enqueue(TaskId::node(node), Source::Step { run, parallel });
            }
            if let Some(step) = self.step_mut(node) {
                step.class = Some(class);
            }
        }
        let is_plain = matches!(self.step(node), Some(Step { kind: Kind::Plain { .. }, entered: true, .. }));
        if is_plain {
            self.load_work(TaskId::node(node), life, now);
        }
    }

    /// Restores what a job, plain step or item was doing.
    fn load_work(&mut self, task: TaskId, life: &Life, now: Moment) {
        let Some(source) = self.source_of(task) else { return };
        let class = self.class_for(source);
        self.load_work_with(task, class, life, now);
    }

    fn load_work_with(&mut self, task: TaskId, class: ClassId, life: &Life, now: Moment) {
        // What has never started waits since it was accepted; when a later wait began is not stored.
        let since = match self.nodes.get(&task.node) {
            Some(Node::Job(job)) if life.tally.started == 0 => job.accepted,
            Some(Node::Step(step)) if life.tally.started == 0 => step.since,
            _ => now,
        };
        let mut work = Work { class, tally: life.tally, since, at: WorkState::Waiting };
        match (&life.grant, life.due) {
            (Some(grant), _) if life.state == State::Running => {
                let timeout = self.terms(task.node).timeout.map(|timeout| grant.at + timeout);
                self.remember_gone_worker(&grant.worker, now);
                let unclaimed =
                    self.workers.get(&grant.worker).is_some_and(|worker| worker.incarnation == UNKNOWN);
                let stop = life.stop.filter(|_| !self.planted.has(Bug::StopForgottenAtLoad));
                work.since = grant.at;
                work.at = WorkState::Running(Box::new(Running {
                    epoch: grant.epoch,
                    worker: grant.worker.clone(),
                    granted: grant.at,
                    until: grant.until,
                    length: grant.length,
                    timeout,
                    stop,
                    missing: 0,
                    excused: false,
                    unclaimed,
                    // Only what is listed is renewed.
                    received: grant.until > grant.at + grant.length,
                }));
                self.admission.hold(class, Some(&grant.worker));
                self.put_work(task, work);
                if let Some(at) = timeout.filter(|_| stop.is_none()) {
                    self.timers.set(at, task, Alarm::Timeout);
                }
                self.load_attempt(task, grant);
            }
            (_, Some(due)) if life.state == State::Scheduled => {
                work.at = WorkState::Scheduled(due);
                self.put_work(task, work);
                self.timers.set(due, task, Alarm::Due);
                self.left(class);
            }
            _ => {
                self.put_work(task, work);
                self.enqueue_in(task, class);
            }
        }
    }

    fn put_work(&mut self, task: TaskId, work: Work) {
        match (self.nodes.get_mut(&task.node), task.index()) {
            (Some(Node::Job(job)), _) => job.work = work,
            (Some(Node::Step(step)), index) => match (&mut step.kind, index) {
                (Kind::Plain { work: slot, .. }, None) => *slot = Some(work),
                (Kind::Loop(items), Some(index)) => {
                    items.items.entry(index).and_modify(|item| item.work = work);
                }
                _ => {}
            },
            _ => {}
        }
    }

    /// A worker that is gone may still have attempts whose leases have not ended. They count as its own, should it
    /// come back.
    fn remember_gone_worker(&mut self, name: &Name, now: Moment) {
        if self.workers.get(name).is_some() {
            return;
        }
        self.workers.insert(name, UNKNOWN, now, Moment::MAX);
        if let Some(worker) = self.workers.get_mut(name) {
            worker.connected = false;
        }
        let nothing = Skills { queues: Vec::new(), processes: false, ..Skills::plain() };
        self.admission.set_worker(name, nothing, SlotCounts::default(), now);
    }

    fn load_attempt(&mut self, task: TaskId, grant: &crate::protocol::GrantRow) {
        if let Some(worker) = self.workers.get_mut(&grant.worker) {
            worker.attempts.insert(task, grant.epoch);
        }
        self.workers.check_by(&grant.worker, grant.until);
    }

    fn load_items(&mut self, rows: Vec<ItemRow>, now: Moment) {
        let mut rows = rows.into_iter().peekable();
        while let Some(row) = rows.next() {
            let unstarted = |life: &Life| life.state == State::Waiting && life.tally == Default::default();
            if !unstarted(&row.life) {
                self.load_item(row, now);
                continue;
            }
            // Items in a row that never started and share a key are one stretch.
            let mut length = 1;
            while rows
                .next_if(|next| {
                    next.step == row.step
                        && next.index == row.index + length
                        && next.key == row.key
                        && unstarted(&next.life)
                })
                .is_some()
            {
                length += 1;
            }
            self.add_segment(row.step, row.index, length, row.key);
        }
    }

    fn load_item(&mut self, row: ItemRow, now: Moment) {
        let task = TaskId::item(row.step, row.index);
        let known = self.loop_mut(row.step).and_then(|items| items.items.get_mut(&row.index));
        if let Some(item) = known {
            item.key = row.key;
            return;
        }
        let Some(source) = self.step_source(row.step, &row.key) else { return };
        let class = self.class_for(source);
        let work = Work { class, tally: row.life.tally, since: now, at: WorkState::Waiting };
        if let Some(items) = self.loop_mut(row.step) {
            items.items.insert(row.index, Item { work, key: row.key });
        }
        self.load_work_with(task, class, &row.life, now);
    }

    /// Goes on with what a run or loop was in the middle of.
    fn resume_node(&mut self, node: NodeId, now: Moment) {
        match self.nodes.get(&node) {
            Some(Node::Run(_)) => self.resume_run(node, now),
            Some(Node::Step(step)) if step.entered => match &step.kind {
                Kind::Loop(items) if items.stop.is_some() => {
                    if let Some(items) = self.loop_mut(node) {
                        items.ended.cancelled += items.count - items.expanded;
                        items.expanded = items.count;
                    }
                    self.busy.insert(node);
                }
                Kind::Loop(_) => self.expand_on(node),
                Kind::Wait { until } => self.timers.set(*until, TaskId::node(node), Alarm::Due),
                _ => {}
            },
            _ => {}
        }
    }

    fn resume_run(&mut self, node: NodeId, now: Moment) {
        let Some(run) = self.run(node) else { return };
        let (state, since) = (run.state, run.since);
        if run.parent.is_none() {
            let source = self.run_source(&run.plan.flow.name, &run.key, &run.tags);
            match state {
                RunState::Scheduled(due) => self.timers.set(due, TaskId::node(node), Alarm::Due),
                RunState::Waiting => {
                    let class = self.class_for(source);
                    // It has waited since it was accepted, whoever led then.
                    self.ask_for_root(node, class, since);
                }
                RunState::Running => {
                    let class = self.class_for(source);
                    self.admission.hold(class, None);
                    self.run_mut(node).into_iter().for_each(|run| run.class = Some(class));
                }
            }
        }
        if state != RunState::Running {
            return;
        }
        self.begun.insert(node);
        let Some(run) = self.run_mut(node) else { return };
        run.find_ready();
        run.sweep = run.stop.and(Some(0)).filter(|_| run.open > 0);
        let (deadline, is_done) = (run.deadline, run.open == 0);
        if let Some(at) = deadline {
            self.timers.set(at, TaskId::node(node), Alarm::Deadline);
        }
        self.busy.insert(node);
        if is_done {
            self.steps_are_done(node, now);
        }
    }
}
