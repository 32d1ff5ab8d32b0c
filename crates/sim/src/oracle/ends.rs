//! How everything ended: nothing accepted is lost, nothing is counted twice, nothing lives on.

use super::{Deferred, Oracle, Violation};
use std::collections::{BTreeMap, BTreeSet};
use tidegate_core::ids::NodeId;
use tidegate_core::model::{WhenBusy, WhenFull};
use tidegate_core::protocol::{Body, Lease, NodeRow, StepKind};
use tidegate_core::state::State;
use tidegate_core::time::{Moment, Span};
use tidegate_store::memory::Tables;

impl Oracle {
    /// Something that was put off is due.
    pub(crate) fn judge_deferred(
        &mut self,
        deferred: &Deferred,
        tables: &Tables,
        now: Moment,
    ) -> Result<(), Violation> {
        match deferred {
            Deferred::LeaseIsOver { lease, worker, since } => {
                if !self.calm_since(*since + Span::micros(1)) {
                    return Ok(());
                }
                self.test("I16");
                if runs_under(tables, *lease) {
                    let what = format!("{lease:?} is held by {worker}, which died {} ago", now.since(*since));
                    return Err(Violation::new("I16", what, now));
                }
            }
            Deferred::CancelIsOver { node, since, calm } => {
                if !self.calm_since(*calm) {
                    return Ok(());
                }
                self.test("I14");
                let open = tables.tasks.get(node).is_some_and(|task| !task.row.life.state.is_end());
                if open {
                    let what = format!("{node:?} was cancelled {} ago and is open", now.since(*since));
                    return Err(Violation::new("I14", what, now));
                }
            }
        }
        Ok(())
    }

    pub(crate) fn judge_end(&mut self, tables: &Tables, now: Moment) -> Result<(), Violation> {
        if let Some(violation) = self.limits.pending.pop() {
            return Err(violation);
        }
        for invariant in ["I2", "I9"] {
            self.test(invariant);
        }
        self.judge_jobs(tables, now)?;
        self.judge_loops(tables, now)?;
        self.judge_runs_inside(tables, now)?;
        for (node, root) in &self.roots {
            let state = tables.tasks.get(node).map(|task| task.row.life.state);
            let expected = match state {
                Some(State::Succeeded | State::Failed) => true,
                Some(State::Cancelled) => {
                    root.cancel_asked.is_some() || root.when_busy == WhenBusy::CancelRunning
                }
                Some(State::TimedOut) => root.has_timeout,
                Some(State::Replaced) => root.when_busy == WhenBusy::Replace,
                _ => false,
            };
            if !expected {
                return Err(Violation::new(
                    "I5",
                    format!("accepted run {node:?} is {state:?} in the end"),
                    now,
                ));
            }
        }
        Ok(())
    }

    fn judge_jobs(&mut self, tables: &Tables, now: Moment) -> Result<(), Violation> {
        for (label, job) in &self.jobs {
            let Some(task) = tables.tasks.get(&job.node) else {
                return Err(Violation::new("I5", format!("accepted {label} is not stored"), now));
            };
            let life = &task.row.life;
            let nothing = super::Deeds::default();
            let deeds = self.deeds.get(label).unwrap_or(&nothing);
            let wrong = match life.state {
                State::Succeeded if !deeds.succeeded => Some("succeeded, but no attempt of it did"),
                State::TimedOut if job.spec.has_timeout => None,
                State::Failed if self.lossless && !may_have_failed(job, deeds) => {
                    Some("failed, but nothing of it did")
                }
                State::Cancelled
                    if job.cancel_asked.is_none() && job.spec.when_busy != WhenBusy::CancelRunning =>
                {
                    Some("was cancelled, but nobody asked for it")
                }
                State::Expired if waited_too_long(job, &task.row) => None,
                State::Replaced if job.spec.when_busy == WhenBusy::Replace => None,
                State::Refused if job.spec.line.when_full == WhenFull::DropOldest => None,
                state if !state.is_end() => Some("has no end"),
                State::Succeeded | State::Failed | State::Cancelled => None,
                _ => Some("ended in a way that nobody asked for"),
            };
            if let Some(wrong) = wrong {
                return Err(Violation::new("I5", format!("{label} {wrong} ({})", life.state), now));
            }
            if deeds.succeeded_told && life.state != State::Succeeded {
                let what = format!("{label}: its success was confirmed, and it ended {}", life.state);
                return Err(Violation::new("I5", what, now));
            }
            if self.limits.is_running(label) {
                return Err(Violation::new("I8", format!("{label} has ended and still runs"), now));
            }
        }
        let cancelled = self.jobs.values().filter(|job| job.cancel_done.is_some()).count();
        *self.tested.entry("I14").or_default() += cancelled as u64;
        *self.tested.entry("I5").or_default() += self.jobs.len() as u64;
        Ok(())
    }

    /// End states sum up to the number of items, and nothing comes after a loop before its items have ended.
    fn judge_loops(&mut self, tables: &Tables, now: Moment) -> Result<(), Violation> {
        let mut tested = 0;
        for (node, task) in &tables.tasks {
            let Body::Step(step) = &task.row.body else { continue };
            let StepKind::Loop { count } = step.kind else { continue };
            let items = tables.items.range((*node, 0)..=(*node, u32::MAX));
            let (rows, open) = items.fold((0, 0), |(rows, open), (_, item)| {
                (rows + 1, open + u32::from(!item.life.state.is_end()))
            });
            if open > 0 {
                return Err(Violation::new("I6", format!("{open} items of loop {node:?} have no end"), now));
            }
            let complete = task.row.life.state == State::Succeeded;
            if complete && rows != count {
                return Err(Violation::new("I6", format!("loop {node:?} has {rows} of {count} items"), now));
            }
            if complete && let Some(ended) = task.row.life.ended {
                let late = tables
                    .items
                    .range((*node, 0)..=(*node, u32::MAX))
                    .find(|(_, item)| item.life.ended > Some(ended));
                if let Some(((_, index), _)) = late {
                    let what = format!("loop {node:?} ended before its item {index}");
                    return Err(Violation::new("I6", what, now));
                }
            }
            tested += 1;
        }
        *self.tested.entry("I6").or_default() += tested;
        Ok(())
    }

    /// A run inside an item is its only one and ends as the item does; an item that was at work had one.
    fn judge_runs_inside(&mut self, tables: &Tables, now: Moment) -> Result<(), Violation> {
        let mut inside = BTreeMap::new();
        for task in tables.tasks.values() {
            let Body::ItemRun(body) = &task.row.body else { continue };
            let Some(step) = task.row.parent else { continue };
            let (key, life) = ((step, body.index), &task.row.life);
            let item = tables.items.get(&key).map(|item| item.life.state);
            if inside.insert(key, life.state).is_some() {
                return Err(Violation::new("I6", format!("item {key:?} had two runs inside"), now));
            }
            if item != Some(life.state) {
                let what = format!("the run inside item {key:?} is {}, the item {item:?}", life.state);
                return Err(Violation::new("I6", what, now));
            }
        }
        let loops: BTreeSet<NodeId> = inside.keys().map(|(step, _)| *step).collect();
        let at_work = tables.items.iter().filter(|(_, item)| item.life.tally.started > 0);
        let mut of_flows = at_work.filter(|((step, _), _)| loops.contains(step));
        if let Some((key, _)) = of_flows.find(|(key, _)| !inside.contains_key(key)) {
            return Err(Violation::new("I6", format!("item {key:?} had no run inside"), now));
        }
        *self.tested.entry("I6").or_default() += inside.len() as u64;
        Ok(())
    }
}

fn may_have_failed(job: &super::Job, deeds: &super::Deeds) -> bool {
    job.spec.has_timeout
        || deeds.failures >= job.spec.attempts
        || deeds.lost + deeds.maybe_lost + deeds.given_up > job.spec.max_losses
}

fn waited_too_long(job: &super::Job, row: &NodeRow) -> bool {
    let waited = row.life.ended.map(|ended| ended.since(row.accepted));
    job.spec.line.start_within.is_some_and(|span| waited >= Some(span))
}

/// Whether a row says that this lease is live.
fn runs_under(tables: &Tables, lease: Lease) -> bool {
    let life = match lease.task.index() {
        None => tables.tasks.get(&lease.task.node).map(|task| &task.row.life),
        Some(index) => tables.items.get(&(lease.task.node, index)).map(|item| &item.life),
    };
    life.is_some_and(|life| {
        life.state == State::Running && life.grant.as_ref().is_some_and(|grant| grant.epoch == lease.epoch)
    })
}
