//! Loops: a window that slides over a list. Items that never started are ranges; the window is a limit like any
//! other, so it can neither over-dispatch nor forget to refill.

use crate::admission::{ClassId, Rank};
use crate::core::Core;
use crate::ids::{NodeId, TaskId};
use crate::model::OnFailure;
use crate::nodes::{Item, Kind, Loop, Segment, Step, Work, WorkState};
use crate::planted::Bug;
use crate::protocol::{Payload, Rendered, Stop, Tally, Write};
use crate::state::State;
use crate::time::Moment;

impl Core {
    pub(crate) fn loop_mut(&mut self, node: NodeId) -> Option<&mut Loop> {
        match self.step_mut(node) {
            Some(Step { kind: Kind::Loop(items), .. }) => Some(items),
            _ => None,
        }
    }

    pub(crate) fn loop_of(&self, node: NodeId) -> Option<&Loop> {
        match self.step(node) {
            Some(Step { kind: Kind::Loop(items), .. }) => Some(items),
            _ => None,
        }
    }

    /// A slice of items was rendered: they are stored, and ask. One that could not be rendered has failed.
    pub(crate) fn items_evaluated(
        &mut self,
        node: NodeId,
        from: u32,
        mut items: Vec<Result<Rendered, String>>,
        now: Moment,
    ) {
        let to = from + items.len() as u32;
        if self.planted.strikes(Bug::ItemForgotten, 2) && items.len() > 1 {
            items.pop();
        }
        // What a run inside an item is given is read from the store, by whoever renders its templates.
        let is_over_flows = self.called_flow(node).is_some();
        let Some(record) = self.loop_mut(node) else { return };
        record.asking = false;
        if record.stop.is_some() {
            return self.loop_may_be_done(node, now);
        }
        record.expanded = to;
        if !is_over_flows {
            record.keep_orders(from, items.iter().map(|item| item.as_ref().ok().map(|item| &item.order)));
        }
        self.add_segments(node, from, &items);
        let (rows, failed) = rows(from, items);
        self.write(Write::ItemsAdded { step: node, from, items: rows, at: now });
        for (index, error) in failed {
            self.fail_unrendered(node, index, error, now);
        }
        self.expand_on(node);
    }

    /// Asks for the next slice once few wait: until then nobody could tell whether it was there. Items with keys overtake
    /// each other, so all of these must be.
    pub(crate) fn expand_on(&mut self, node: NodeId) {
        let Some(record) = self.loop_of(node) else { return };
        if record.asking || record.stop.is_some() || record.expanded == record.count {
            return;
        }
        if record.unstarted() < self.slice || self.has_keys(node) {
            self.ask_for_items(node);
        }
    }

    fn has_keys(&self, node: NodeId) -> bool {
        self.definition_for(node).is_some_and(|action| action.key.is_some())
    }

    /// Items in a row with the same key are one stretch, so that a loop costs no memory an item.
    fn add_segments(&mut self, node: NodeId, from: u32, items: &[Result<Rendered, String>]) {
        let alike = |a: &Result<Rendered, String>, b: &Result<Rendered, String>| match (a, b) {
            (Ok(a), Ok(b)) => a.key == b.key,
            _ => false,
        };
        let mut first = from;
        for stretch in items.chunk_by(alike) {
            let length = stretch.len() as u32;
            if let Some(Ok(item)) = stretch.first() {
                self.add_segment(node, first, length, item.key.clone());
            }
            first += length;
        }
    }

    /// It gets a record only to end.
    fn fail_unrendered(&mut self, node: NodeId, index: u32, error: String, now: Moment) {
        let Some(source) = self.step_source(node, &None) else { return };
        let class = self.class_for(source);
        self.left(class);
        let work = Work { class, tally: Tally::default(), since: now, at: WorkState::Waiting };
        if let Some(record) = self.loop_mut(node) {
            record.items.insert(index, Item { work, key: None });
        }
        self.end_item(node, index, State::Failed, None, Some(error), now);
    }

    pub(crate) fn add_segment(
        &mut self,
        node: NodeId,
        from: u32,
        length: u32,
        key: Option<crate::ids::Name>,
    ) {
        let Some(source) = self.step_source(node, &key) else { return };
        let class = self.class_for(source);
        let mut segment = Segment { to: from + length, class, key, unstarted: length, parked: Vec::new() };
        if self.is_paused(node) {
            segment.parked.push((from, length));
            self.left(class);
        } else {
            let first = self.rank(TaskId::item(node, from));
            self.admission.enqueue(class, first, length);
        }
        if let Some(record) = self.loop_mut(node) {
            record.segments.insert(from, segment);
        }
    }

    /// An item was granted: if it starts for the first time it gets a record of its own.
    pub(crate) fn open_item(&mut self, node: NodeId, index: u32, class: ClassId, now: Moment) {
        let Some(record) = self.loop_mut(node) else { return };
        if !record.items.contains_key(&index) {
            let work = Work { class, tally: Tally::default(), since: now, at: WorkState::Waiting };
            record.open(index, work);
            self.expand_on(node);
        }
    }

    pub(crate) fn end_item(
        &mut self,
        node: NodeId,
        index: u32,
        state: State,
        output: Option<Payload>,
        error: Option<String>,
        now: Moment,
    ) {
        let on_failure =
            self.step_model(node).and_then(|step| step.each.as_ref()).map(|each| each.on_failure);
        let Some(record) = self.loop_mut(node) else { return };
        if record.items.remove(&index).is_none() {
            return;
        }
        record.orders.remove(&index);
        record.ended.count(state);
        let tolerated = match on_failure {
            Some(OnFailure::Tolerate(failures)) => record.ended.failed <= failures,
            _ => true,
        };
        self.write(Write::Ended { task: TaskId::item(node, index), state, output, error, at: now });
        if !tolerated {
            self.stop_loop(node, Stop::LoopFailed, now);
        }
        self.loop_may_be_done(node, now);
    }

    /// No further item starts; running ones are told to stop and the others end, in slices.
    pub(crate) fn stop_loop(&mut self, node: NodeId, why: Stop, now: Moment) {
        let Some(record) = self.loop_mut(node) else { return };
        if record.stop.is_some() {
            return;
        }
        record.stop = Some(why);
        // Items that were never expanded have no rows; they are counted all the same.
        record.ended.cancelled += record.count - record.expanded;
        record.expanded = record.count;
        record.orders.clear();
        let error = record.error.clone();
        self.write(Write::Stopping { task: TaskId::node(node), why, error, at: now });
        self.busy.insert(node);
    }

    fn end_unstarted_items(&mut self, node: NodeId, from: u32, segment: Segment, now: Moment) {
        let (first, last) =
            (self.rank(TaskId::item(node, from)), self.rank(TaskId::item(node, segment.to - 1)));
        let mut ranges = segment.parked;
        if ranges.is_empty() {
            let taken = self.admission.withdraw_range(segment.class, first, last, now);
            self.left(segment.class);
            ranges = self.never_started(node, taken);
        }
        for (from, count) in ranges {
            self.write(Write::ItemsEnded {
                step: node,
                from,
                to: from + count,
                state: State::Cancelled,
                at: now,
            });
            if let Some(record) = self.loop_mut(node) {
                record.ended.cancelled += count;
            }
        }
    }

    /// What of these ranges never started, as (first index, count). An item that stands in line again after an
    /// attempt is in the same stretch of ranks, but stands there by itself; it is looked after by its own record.
    pub(crate) fn never_started(&self, node: NodeId, ranges: Vec<(Rank, u32)>) -> Vec<(u32, u32)> {
        let has_record = |index| self.loop_of(node).is_some_and(|record| record.items.contains_key(&index));
        let ranges = ranges.into_iter().filter_map(|(first, count)| Some((first.task().index()?, count)));
        ranges.filter(|&(from, _)| !has_record(from)).collect()
    }

    /// Goes on with stopping a loop: first item by item, because what runs takes its time to stop, then the
    /// stretches that never started. Says whether there is more.
    pub(crate) fn go_on_with_loop(&mut self, node: NodeId, now: Moment, slice: &mut u32) -> bool {
        let Some(why) = self.loop_of(node).and_then(|record| record.stop) else { return false };
        let untold = |item: &Item| match &item.work.at {
            WorkState::Running(running) => running.is_news(why),
            WorkState::Inside(run) => self.run(*run).is_some_and(|run| run.stop.is_none()),
            WorkState::Scheduled(_) | WorkState::Waiting => true,
        };
        let items = self.loop_of(node).into_iter().flat_map(|record| &record.items);
        let items = items.filter(|(_, item)| untold(item)).map(|(&index, _)| TaskId::item(node, index));
        let batch: Vec<TaskId> = items.take(*slice as usize).collect();
        *slice -= batch.len() as u32;
        for task in batch {
            self.stop_work(task, why, now);
        }
        while *slice > 0
            && let Some((from, segment)) = self.loop_mut(node).and_then(|record| record.segments.pop_first())
        {
            *slice -= 1;
            self.end_unstarted_items(node, from, segment, now);
        }
        // After a load nothing may be left to end, and nobody else who notices.
        self.loop_may_be_done(node, now);
        *slice == 0
    }

    /// The step ends exactly once: when no item is open.
    pub(crate) fn loop_may_be_done(&mut self, node: NodeId, now: Moment) {
        let early = self.planted.has(Bug::ParentEndsTwice);
        let Some(record) = self.loop_of(node) else { return };
        let all = if early { record.count.saturating_sub(1).max(1) } else { record.count };
        if record.ended.total() < all || record.asking {
            return;
        }
        let (state, error) = match record.stop {
            Some(Stop::LoopFailed) => {
                let counted = || format!("{} of {} items failed", record.ended.failed, record.count);
                (State::Failed, Some(record.error.clone().unwrap_or_else(counted)))
            }
            Some(stop) => (stop.end(), None),
            None => (State::Succeeded, None),
        };
        self.end_step(node, state, None, error, now);
    }
}

/// The rows of a slice, and which of them stand for items that could not be rendered.
fn rows(from: u32, items: Vec<Result<Rendered, String>>) -> (Vec<Rendered>, Vec<(u32, String)>) {
    let mut failed = Vec::new();
    let row = |(index, item): (u32, Result<Rendered, String>)| {
        item.unwrap_or_else(|error| {
            failed.push((index, error));
            Rendered { order: Payload::null(), key: None }
        })
    };
    let rows = (from..).zip(items).map(row).collect();
    (rows, failed)
}

#[cfg(test)]
mod tests {
    use crate::core::SLICE;
    use crate::ids::{NodeId, TaskId};
    use crate::model::{EXPAND_SLICE, OnFailure, Retry, Step};
    use crate::protocol::{
        Answer, Command, Effect, Evaluation, Outcome, Payload, Question, Refusal, Rendered, Write,
    };
    use crate::state::State;
    use crate::testkit::{Kit, flow, looping, rendered};
    use crate::time::Span;

    #[test]
    fn a_stopped_loop_ends_items_that_pause_before_a_retry_in_slices() {
        let count = SLICE + 44;
        let mut kit = Kit::new(count);
        let retry = Some(Retry { attempts: 2, ..Retry::ONCE });
        let each = Step { retry, ..looping("each", None, OnFailure::STOP) };
        kit.declare(vec![flow("big", vec![each])], Vec::new(), None);
        let run = kit.run("big");
        let each = kit.answer_loop(run, 0, count);
        kit.apply(Command::Wake);
        for index in 0..count {
            let lease = kit.lease(TaskId::item(each, index));
            kit.finish(lease, Outcome::failed("first"));
        }
        let ended = |kit: &Kit| {
            let of_items =
                |write: &&Write| matches!(write, Write::Ended { task, .. } if task.index().is_some());
            kit.writes.iter().filter(of_items).count() as u32
        };
        kit.apply(Command::Cancel(TaskId::node(each)));
        assert_eq!((ended(&kit), kit.ended(each)), (SLICE, None));
        kit.apply(Command::Wake);
        assert_eq!((ended(&kit), kit.ended(each)), (count - SLICE, Some((State::Cancelled, None))));
    }

    /// Answers what is asked about items from `from` on.
    fn answer_slice(kit: &mut Kit, step: NodeId, from: u32, count: u32, key: Option<&str>) -> Answer {
        let item = |_| Ok(Rendered { order: Payload::new("7"), ..rendered(key) });
        let evaluation = Evaluation::Items((0..count).map(item).collect());
        let question = Question::Items { step, from, to: from + count };
        kit.apply(Command::Evaluated { question, evaluation })
    }

    fn asks(kit: &Kit, wanted: u32) -> bool {
        let ask =
            |effect: &Effect| matches!(effect, Effect::Ask(Question::Items { from, .. }) if *from == wanted);
        kit.effects.iter().any(ask)
    }

    #[test]
    fn a_loop_is_expanded_as_far_as_it_is_needed() {
        let mut kit = Kit::new(1);
        kit.declare(vec![flow("big", vec![looping("each", None, OnFailure::STOP)])], Vec::new(), None);
        let run = kit.run("big");
        let each = run.step(0);
        let busy = kit.job("other");
        kit.answer_step(run, 0, Evaluation::List { items: Payload::new("[]"), count: 2 * EXPAND_SLICE + 1 });
        answer_slice(&mut kit, each, 0, EXPAND_SLICE, None);
        assert!(!asks(&kit, EXPAND_SLICE), "a whole slice waits");
        let far = TaskId::item(each, 2 * EXPAND_SLICE);
        let explained = kit.core.explain(far, kit.now).map(|explained| explained.state);
        assert_eq!(explained, Some(State::Waiting), "it waits like those before it");
        assert_eq!(kit.refused(Command::Cancel(far)), Refusal::NotInLine { index: far.index().unwrap_or(0) });
        let beyond = TaskId::item(each, 2 * EXPAND_SLICE + 1);
        assert_eq!(kit.refused(Command::Cancel(beyond)), Refusal::UnknownTask(beyond));
        kit.succeed(TaskId::node(busy));
        assert!(asks(&kit, EXPAND_SLICE), "one has started");
    }

    #[test]
    fn what_an_item_is_to_do_is_at_hand_until_it_ends() {
        let mut kit = Kit::new(2);
        let retry = Some(Retry { attempts: 2, ..Retry::ONCE });
        let each = Step { retry, ..looping("each", None, OnFailure::STOP) };
        kit.declare(vec![flow("one", vec![each])], Vec::new(), None);
        let run = kit.run("one");
        kit.answer_step(run, 0, Evaluation::List { items: Payload::new("[]"), count: 2 });
        answer_slice(&mut kit, run.step(0), 0, 2, None);
        let orders = |kit: &Kit| {
            let order = |effect: &Effect| match effect {
                Effect::Deliver { order, .. } => Some(order.clone()),
                _ => None,
            };
            kit.effects.iter().filter_map(order).collect::<Vec<_>>()
        };
        assert_eq!(orders(&kit), [Some(Payload::new("7")), Some(Payload::new("7"))]);
        let first = TaskId::item(run.step(0), 0);
        kit.finish(kit.lease(first), Outcome::failed("first"));
        kit.advance(Span::seconds(60));
        kit.apply(Command::Wake);
        assert_eq!(orders(&kit)[2..], [Some(Payload::new("7"))], "the second attempt");
        kit.succeed(first);
        let kept = kit.core.loop_of(run.step(0)).map(|items| items.orders.len());
        assert_eq!(kept, Some(1));
    }
}
