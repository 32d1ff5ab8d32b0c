//! How committed writes change a [`View`], and what there is to tell about each.

use super::event::{Event, What};
use super::view::{Items, Reused, Run, Step, View};
use std::collections::BTreeSet;
use tidegate_core::ids::{NodeId, TaskId};
use tidegate_core::protocol::{
    Body, ItemRunBody, NodeRow, RunBody, Snapshot, StepBody, StepKind, Tally, Write,
};
use tidegate_core::state::State;
use tidegate_core::time::Moment;
use tidegate_store::InState;

impl View {
    /// Takes a write in. What is not about this run changes nothing.
    pub fn apply(&mut self, write: &Write) -> Option<Event> {
        match write {
            Write::NodeAdded(row) => self.added(row),
            Write::ItemsAdded { step, from, items, .. } => {
                let to = from + u32::try_from(items.len()).unwrap_or(0);
                let known = self.items(*step)?;
                known.listed = known.listed.max(to);
                known.waiting.extend(*from..to);
                None
            }
            Write::Entered { node, state, at } => self.entered(*node, *state, *at),
            Write::Granted { task, grant, number } => self.granted(*task, *number, grant.at),
            Write::ItemEntered { step, index, at } => self.granted(TaskId::item(*step, *index), 1, *at),
            Write::Moved { task, state, due, tally, error, at } => {
                self.moved(*task, *state, *due, *tally, error.as_deref(), *at)
            }
            Write::Ended { task, state, error, at, .. } => self.ended(*task, *state, error.as_deref(), *at),
            Write::ItemsEnded { step, from, to, state, at } => {
                let items = self.items(*step)?;
                items.waiting.retain(|index| !(*from..*to).contains(index));
                items.count_end(*state, to - from);
                let mut name = self.name(TaskId::item(*step, *from))?;
                if to - from > 1 {
                    name = format!("{name}–{}", to - 1);
                }
                Some(Event { at: *at, name, what: What::Ended { state: *state, took: None, error: None } })
            }
            Write::Stopping { task, why, at, .. } => {
                match self.runs.get_mut(&task.node) {
                    Some(run) => run.stopping = Some(*why),
                    None => self.step_mut(task.node)?.stopping = true,
                }
                // Items are stopped with their loop, steps with their run: once is enough.
                self.tell(*task, *at, What::Stopping(*why)).filter(|_| task.index().is_none())
            }
            _ => None,
        }
    }

    /// What rows tell, those of roots and runs before what is below them.
    pub fn take_in(&mut self, rows: &[NodeRow]) {
        for row in rows {
            self.added(row);
        }
    }

    /// How the items of a loop fare, as far as rows tell it.
    pub fn count_items(&mut self, step: NodeId, states: &[InState]) {
        let Some(known) = self.items(step) else { return };
        for &InState { state, items, .. } in states {
            known.listed += items;
            match state {
                state if state.is_end() => known.count_end(state, items),
                State::Running => known.running.extend((0..items).map(|index| (index, Moment::default()))),
                _ => {}
            }
        }
    }

    /// What went wrong with an item.
    pub fn item_failed(&mut self, step: NodeId, index: u32, error: String) {
        if let Some(items) = self.items(step) {
            items.error = Some((index, error));
        }
    }

    /// What a reused step put out was deleted with the run in which it ran.
    pub fn output_is_gone(&mut self, step: NodeId) {
        if let Some(reused) = self.step_mut(step).and_then(|step| step.reused.as_mut()) {
            reused.is_gone = true;
        }
    }

    /// Brings it up to date with a store, after entries were missed.
    pub fn reload(&mut self, snapshot: &Snapshot) {
        self.take_in(&snapshot.nodes);
        for (&node, (rows, tally)) in &snapshot.loops {
            if let Some(items) = self.items(node) {
                let (succeeded, failed, cancelled) = (tally.succeeded, tally.failed, tally.cancelled);
                let (count, listed) = (items.count.max(*rows), *rows);
                let inside = std::mem::take(&mut items.inside);
                *items = Items { count, listed, succeeded, failed, cancelled, inside, ..Items::default() };
            }
        }
        for row in &snapshot.items {
            let Some(items) = self.items(row.step) else { continue };
            match row.life.state {
                State::Running => {
                    let granted = row.life.grant.as_ref().map(|grant| grant.at);
                    items.running.insert(row.index, granted.or(row.life.started).unwrap_or(snapshot.now));
                }
                State::Scheduled => {
                    items.retrying.insert(row.index, row.life.due.unwrap_or(snapshot.now));
                }
                _ => {
                    items.waiting.insert(row.index);
                }
            }
        }
        let open: BTreeSet<NodeId> = snapshot.nodes.iter().map(|row| row.node).collect();
        let steps = self.runs.values_mut().flat_map(|run| &mut run.steps);
        let loops = steps.filter_map(|step| step.items.as_mut());
        let is_over = |_: &u32, run: &mut NodeId| !open.contains(run);
        let over: Vec<NodeId> =
            loops.flat_map(|items| items.inside.extract_if(.., is_over)).map(|(_, run)| run).collect();
        over.into_iter().for_each(|run| self.forget(run));
        self.close_what_is_over(snapshot.now);
    }

    /// A run inside an item that has ended is not shown any more, with all that is inside of it: there may be as many as
    /// there are items.
    fn forget(&mut self, run: NodeId) {
        let Some(gone) = self.runs.remove(&run) else { return };
        for inner in gone.steps.iter().flat_map(Step::runs_inside) {
            self.forget(inner);
        }
    }

    /// The rows of a flow inside are gone once it has ended: it ended as the step around it did.
    fn close_what_is_over(&mut self, now: Moment) {
        let over: Vec<(NodeId, State, Option<Moment>)> = self
            .runs
            .values()
            .flat_map(|run| &run.steps)
            .filter_map(|step| Some((step.inside?, step.state.filter(|state| state.is_end())?, step.ended)))
            .collect();
        for (run, state, ended) in over {
            let Some(run) = self.runs.get_mut(&run).filter(|run| !run.state.is_end()) else { continue };
            run.state = state;
            run.ended = ended.or(Some(now));
            for step in run.steps.iter_mut().filter(|step| step.state.is_some_and(|state| !state.is_end())) {
                step.state = Some(state);
                step.ended = ended.or(Some(now));
            }
        }
    }

    fn items(&mut self, step: NodeId) -> Option<&mut Items> {
        self.step_mut(step)?.items.as_mut()
    }

    fn tell(&self, task: TaskId, at: Moment, what: What) -> Option<Event> {
        Some(Event { at, name: self.name(task)?, what })
    }

    fn added(&mut self, row: &NodeRow) -> Option<Event> {
        match &row.body {
            Body::Run(run) | Body::ItemRun(ItemRunBody { run, .. }) => self.run_added(row, run),
            Body::Step(body) => self.step_added(row, body),
            Body::Job(_) if row.node == self.root => self.lives(row),
            Body::Job(_) => None,
        }
    }

    fn run_added(&mut self, row: &NodeRow, body: &RunBody) -> Option<Event> {
        let (path, is_past) = match row.around() {
            None if row.node == self.root => (String::new(), false),
            None => return None,
            Some(around) => (format!("{}/", self.name(around)?), self.put_inside(around, row)?),
        };
        let flow = self.flows.get(&body.flow)?.clone();
        let run = self.runs.entry(row.node).or_insert_with(|| Run::new(flow, path));
        run.state = row.life.state;
        run.started = run.started.or(row.life.started);
        run.ended = row.life.ended;
        run.stopping = row.life.stop;
        run.is_past = is_past;
        None
    }

    /// A step or item knows which run is inside it. Says whether that is past.
    fn put_inside(&mut self, around: TaskId, row: &NodeRow) -> Option<bool> {
        let (outer, _) = self.place(around.node)?;
        let is_past = self.runs.get(&outer)?.is_past;
        let step = self.step_mut(around.node)?;
        let Some(index) = around.index() else {
            step.inside = Some(row.node);
            return Some(is_past);
        };
        let is_past = is_past || row.life.state.is_end();
        if let Some(items) = step.items.as_mut().filter(|_| !is_past) {
            items.inside.insert(index, row.node);
        }
        Some(is_past)
    }

    fn step_added(&mut self, row: &NodeRow, body: &StepBody) -> Option<Event> {
        if row.parent.is_none_or(|parent| parent.step(body.index as usize) != row.node) {
            return None;
        }
        let event = self.lives(row);
        let step = self.step_mut(row.node)?;
        match body.kind {
            StepKind::Loop { count } if step.items.is_none() => {
                step.items = Some(Items { count, ..Items::default() });
            }
            StepKind::Wait { until } => step.due = Some(until),
            StepKind::Reused { run, .. } => {
                step.reused = Some(Reused { run, is_gone: false });
                let what = What::Reused { state: row.life.state, run };
                return event.map(|event| Event { what, ..event });
            }
            _ => {}
        }
        event
    }

    /// What a row says about the life of a step, or of a job.
    fn lives(&mut self, row: &NodeRow) -> Option<Event> {
        let step = self.step_mut(row.node)?;
        let life = &row.life;
        step.state = Some(life.state);
        step.started = step.started.or(life.started).or(life.grant.as_ref().map(|grant| grant.at));
        step.ended = life.ended;
        step.due = life.due;
        (step.tries, step.failures) = (life.tally.started, life.tally.failures);
        step.error = life.error.clone().or(step.error.take());
        let what = What::Ended { state: life.state, took: None, error: life.error.clone() };
        self.tell(TaskId::node(row.node), row.accepted, what).filter(|_| life.state.is_end())
    }

    fn entered(&mut self, node: NodeId, state: State, at: Moment) -> Option<Event> {
        let started = What::Started { number: 1, of: 1 };
        if let Some(run) = self.runs.get_mut(&node) {
            (run.state, run.started, run.waits) = (state, Some(at), None);
            // A flow inside has begun with the step around it.
            return self.tell(TaskId::node(node), at, started).filter(|_| node == self.root);
        }
        let step = self.step_mut(node)?;
        step.state = Some(state);
        if state == State::Waiting {
            return None;
        }
        (step.started, step.waits) = (Some(at), None);
        let what = match (&step.items, step.due) {
            (Some(items), _) => What::Items(items.count),
            (None, Some(until)) => What::Until(until),
            (None, None) => started,
        };
        self.tell(TaskId::node(node), at, what)
    }

    fn granted(&mut self, task: TaskId, number: u32, at: Moment) -> Option<Event> {
        let of = self.attempts(task.node)?;
        let step = self.step_mut(task.node)?;
        match (task.index(), &mut step.items) {
            (Some(index), Some(items)) => {
                items.waiting.remove(&index);
                items.retrying.remove(&index);
                items.running.insert(index, at);
                step.waits = step.waits.take().filter(|_| !items.waiting.is_empty());
            }
            _ => {
                (step.state, step.tries) = (Some(State::Running), number);
                (step.started, step.due, step.waits) = (Some(at), None, None);
            }
        }
        self.tell(task, at, What::Started { number, of })
    }

    fn moved(
        &mut self,
        task: TaskId,
        state: State,
        due: Option<Moment>,
        tally: Tally,
        error: Option<&str>,
        at: Moment,
    ) -> Option<Event> {
        let of = self.attempts(task.node)?;
        let step = self.step_mut(task.node)?;
        let was_running = match (task.index(), &mut step.items) {
            (Some(index), Some(items)) => {
                items.retrying.remove(&index);
                match due {
                    Some(due) => drop(items.retrying.insert(index, due)),
                    None => drop(items.waiting.insert(index)),
                }
                items.running.remove(&index).is_some()
            }
            _ => {
                let was_running = step.state == Some(State::Running);
                (step.state, step.due) = (Some(state), due);
                step.failures = tally.failures;
                step.error = error.map(str::to_owned).or(step.error.take());
                was_running
            }
        };
        let what = match due {
            Some(due) => {
                let error = error.unwrap_or("for no reason given").to_owned();
                What::Retries { error, next: tally.started + 1, of, pause: due.since(at) }
            }
            None if was_running => What::Again { error: error.map(str::to_owned) },
            None => return None,
        };
        self.tell(task, at, what)
    }

    fn ended(&mut self, task: TaskId, state: State, error: Option<&str>, at: Moment) -> Option<Event> {
        let error = error.map(str::to_owned);
        if let Some(run) = self.runs.get_mut(&task.node) {
            (run.state, run.ended, run.waits) = (state, Some(at), None);
            // What was cancelled with the run is not what went wrong with it.
            let error = error.filter(|_| state != State::Cancelled);
            let took = run.started.map(|started| at.since(started));
            return self
                .tell(task, at, What::Ended { state, took, error })
                .filter(|_| task.node == self.root);
        }
        let mut over = None;
        let step = self.step_mut(task.node)?;
        let started = match (task.index(), &mut step.items) {
            (Some(index), Some(items)) => {
                items.waiting.remove(&index);
                items.retrying.remove(&index);
                items.count_end(state, 1);
                if let (Some(error), None) = (&error, &items.error) {
                    items.error = Some((index, error.clone()));
                }
                over = items.inside.remove(&index);
                items.running.remove(&index)
            }
            _ => {
                (step.state, step.ended, step.due, step.waits) = (Some(state), Some(at), None, None);
                // What an earlier try complained about does not matter once another has succeeded.
                step.error = error.clone();
                step.started
            }
        };
        over.into_iter().for_each(|run| self.forget(run));
        let took = started.map(|started| at.since(started));
        self.tell(task, at, What::Ended { state, took, error })
    }
}
