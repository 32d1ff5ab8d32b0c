//! A root and all that belongs to it: stepping out of every line at once, and back in.

use crate::catalog::Source;
use crate::core::Core;
use crate::ids::{NodeId, TaskId};
use crate::nodes::{Kind, Node, RunState, StepState, WorkState};
use crate::time::Moment;

impl Core {
    /// The node and everything open below it, parents first.
    pub(crate) fn family(&self, node: NodeId) -> Vec<NodeId> {
        let mut family = vec![node];
        let mut next = 0;
        while let Some(&member) = family.get(next) {
            next += 1;
            match self.nodes.get(&member) {
                Some(Node::Run(run)) => {
                    let open = run.steps.iter().enumerate().filter(|(_, state)| **state == StepState::Open);
                    family.extend(open.map(|(index, _)| member.step(index)));
                }
                Some(Node::Step(step)) => match &step.kind {
                    Kind::SubFlow { child } => family.extend(*child),
                    Kind::Loop(items) => {
                        family.extend(items.items.values().filter_map(|item| item.work.inside()));
                    }
                    _ => {}
                },
                _ => {}
            }
        }
        family
    }

    /// Takes what waits of a node out of its lines, to be put back by [`Core::step_in`].
    pub(crate) fn step_out(&mut self, node: NodeId, now: Moment) {
        let task = TaskId::node(node);
        match self.nodes.get(&node) {
            Some(Node::Job(job)) if matches!(job.work.at, WorkState::Waiting) => {
                let class = job.work.class;
                self.withdraw(task, class, now);
            }
            Some(Node::Run(run)) if run.state == RunState::Waiting => {
                if let Some(class) = run.class {
                    self.withdraw(task, class, now);
                }
            }
            Some(Node::Step(step)) => match (&step.kind, step.entered, step.class) {
                (_, false, Some(class)) => self.withdraw(task, class, now),
                (Kind::Plain { work: Some(work), .. }, true, _) if matches!(work.at, WorkState::Waiting) => {
                    let class = work.class;
                    self.withdraw(task, class, now);
                }
                (Kind::Loop(_), true, _) => self.items_step_out(node, now),
                _ => {}
            },
            _ => {}
        }
    }

    /// Puts what waits of a node in line, at its rank; while it is paused nothing happens.
    pub(crate) fn step_in(&mut self, node: NodeId) {
        if self.is_paused(node) {
            return;
        }
        let task = TaskId::node(node);
        match self.nodes.get(&node) {
            Some(Node::Job(job)) if matches!(job.work.at, WorkState::Waiting) => {
                let source = self.source_of(task);
                self.queue_again(task, source);
            }
            Some(Node::Run(run)) if run.state == RunState::Waiting => {
                let source = self.run_source(&run.plan.flow.name, &run.key, &run.tags);
                let class = self.enqueue(task, source);
                if let Some(run) = self.run_mut(node) {
                    run.class = Some(class);
                }
            }
            Some(Node::Step(step)) => match (&step.kind, step.entered, step.class) {
                (_, false, Some(_)) => {
                    let run = step.run;
                    let parallel =
                        self.run(run).and_then(|run| run.plan.flow.parallel_steps).unwrap_or(u32::MAX);
                    let class = self.enqueue(task, Source::Step { run, parallel });
                    if let Some(step) = self.step_mut(node) {
                        step.class = Some(class);
                    }
                }
                (Kind::Plain { work: Some(work), .. }, true, _) if matches!(work.at, WorkState::Waiting) => {
                    let source = self.source_of(task);
                    self.queue_again(task, source);
                }
                (Kind::Loop(_), true, _) => self.items_step_in(node),
                _ => {}
            },
            _ => {}
        }
    }

    fn items_step_out(&mut self, node: NodeId, now: Moment) {
        let Some(record) = self.loop_of(node) else { return };
        let segments: Vec<(u32, u32, _)> =
            record.segments.iter().map(|(&from, segment)| (from, segment.to, segment.class)).collect();
        let again: Vec<(u32, _)> = record
            .items
            .iter()
            .filter(|(_, item)| matches!(item.work.at, WorkState::Waiting))
            .map(|(&index, item)| (index, item.work.class))
            .collect();
        for (from, to, class) in segments {
            let first = self.rank(TaskId::item(node, from));
            let last = self.rank(TaskId::item(node, to - 1));
            let taken = self.admission.withdraw_range(class, first, last, now);
            let ranges = self.never_started(node, taken);
            if let Some(segment) = self.loop_mut(node).and_then(|record| record.segments.get_mut(&from))
                && segment.parked.is_empty()
            {
                segment.parked = ranges;
            }
        }
        for (index, class) in again {
            self.withdraw(TaskId::item(node, index), class, now);
        }
    }

    fn items_step_in(&mut self, node: NodeId) {
        let Some(record) = self.loop_mut(node) else { return };
        let parked: Vec<_> = record
            .segments
            .iter_mut()
            .map(|(&from, segment)| (from, segment.key.clone(), std::mem::take(&mut segment.parked)))
            .collect();
        let again: Vec<u32> = record
            .items
            .iter()
            .filter(|(_, item)| matches!(item.work.at, WorkState::Waiting))
            .map(|(&index, _)| index)
            .collect();
        for (from, key, ranges) in parked {
            let Some(source) = self.step_source(node, &key) else { continue };
            let class = self.class_for(source);
            for (from, count) in ranges {
                let first = self.rank(TaskId::item(node, from));
                self.admission.enqueue(class, first, count);
            }
            if let Some(segment) = self.loop_mut(node).and_then(|record| record.segments.get_mut(&from)) {
                segment.class = class;
            }
        }
        for index in again {
            let task = TaskId::item(node, index);
            let source = self.source_of(task);
            self.queue_again(task, source);
        }
    }
}
