//! The classes that exist, by what their demands are resolved from.

use crate::admission::ClassId;
use crate::catalog::{AttemptSource, Source};
use crate::core::Core;
use crate::crowd::Entrance;
use crate::ids::{Name, NodeId, TaskId};
use crate::nodes::{Kind, Node, RunState, Segment, WorkState};
use crate::time::{Moment, Span};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::Arc;

/// Classes kept although nobody is in them, so that a quiet action need not be resolved at every submission.
const UNUSED_KEPT: usize = 256;

#[derive(Debug)]
pub(crate) struct Entry {
    pub source: Arc<Source>,
    /// How long the leases of its attempts last.
    pub lease: Span,
    pub entrance: Entrance,
    /// It is in the list of classes that were unused when last seen.
    unused: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Classes {
    by_source: FxHashMap<Arc<Source>, ClassId>,
    by_job: FxHashMap<Name, OfJobs>,
    entries: Vec<Option<Entry>>,
    unused: VecDeque<ClassId>,
}

/// The classes of one action's jobs, by the key that counts: a submission finds its class without resolving
/// anything. Forgotten when anything is declared or set, because a key may count then that did not before.
#[derive(Debug, Default)]
struct OfJobs {
    plain: Option<ClassId>,
    keyed: FxHashMap<Name, ClassId>,
}

impl Classes {
    /// The class of an action's jobs, if it is known.
    pub fn of_job(&self, action: &Name, key: &Option<Name>) -> Option<ClassId> {
        let classes = self.by_job.get(action)?;
        match key {
            None => classes.plain,
            Some(key) => classes.keyed.get(key).copied(),
        }
    }

    fn remember_job(&mut self, action: Name, key: Option<Name>, id: ClassId) {
        let classes = self.by_job.entry(action).or_default();
        match key {
            None => classes.plain = Some(id),
            Some(key) => drop(classes.keyed.insert(key, id)),
        }
    }

    fn forget(&mut self, entry: &Entry) {
        let Some(id) = self.by_source.remove(&entry.source) else { return };
        let Source::Attempt(AttemptSource { action: Some(action), key, .. }) = &*entry.source else { return };
        let Some(classes) = self.by_job.get_mut(action) else { return };
        match key {
            None => drop(classes.plain.take_if(|plain| *plain == id)),
            Some(key) if classes.keyed.get(key) == Some(&id) => drop(classes.keyed.remove(key)),
            Some(_) => {}
        }
    }

    pub fn entry(&self, id: ClassId) -> Option<&Entry> {
        self.entries.get(id.0 as usize)?.as_ref()
    }

    pub fn find(&self, source: &Source) -> Option<ClassId> {
        self.by_source.get(source).copied()
    }

    /// In the order of their ids, so that nothing depends on how a hash falls out.
    pub fn ids(&self) -> Vec<ClassId> {
        let filled = self.entries.iter().enumerate().filter(|(_, entry)| entry.is_some());
        filled.map(|(id, _)| ClassId(id as u32)).collect()
    }

    fn insert(&mut self, id: ClassId, entry: Entry) {
        if self.entries.len() <= id.0 as usize {
            self.entries.resize_with(id.0 as usize + 1, || None);
        }
        self.by_source.insert(entry.source.clone(), id);
        self.entries[id.0 as usize] = Some(entry);
    }
}

impl Core {
    /// The class of a source, resolved and made if it does not exist.
    pub(crate) fn class_for(&mut self, source: Source) -> ClassId {
        if let Some(id) = self.classes.find(&source) {
            return id;
        }
        let asks = self.catalog.resolve(&source);
        let entrance = self.catalog.entrance(&source, &asks);
        let demands = self.admission.demands(asks);
        let id = self.admission.add_class(source.level(), &demands);
        let lease = self.catalog.lease(&source);
        self.classes.insert(id, Entry { source: Arc::new(source), lease, entrance, unused: false });
        self.close_paused_limits(id);
        id
    }

    /// The class of an action's jobs, resolved and made if it does not exist.
    pub(crate) fn job_class(&mut self, action: &Name, key: &Option<Name>, queue: Option<&Name>) -> ClassId {
        if queue.is_some() {
            return self.class_for(Source::Attempt(self.job_source(action, key, queue)));
        }
        if let Some(id) = self.classes.of_job(action, key) {
            return id;
        }
        let source = self.job_source(action, key, None);
        // A key that does not count is not remembered: there may be as many of them as there are jobs.
        let counts = source.key == *key;
        let id = self.class_for(Source::Attempt(source));
        if counts {
            self.classes.remember_job(action.clone(), key.clone(), id);
        }
        id
    }

    /// A limit that was made just now may have been paused before it existed.
    fn close_paused_limits(&mut self, id: ClassId) {
        let demands = self.admission.class(id).demands.clone();
        for demand in demands {
            let limit = self.admission.limit(demand.limit);
            let paused = self.catalog.settings.get(&limit.key).is_some_and(|setting| setting.paused);
            if paused != limit.paused {
                self.admission.set_paused(demand.limit, paused, self.now);
            }
        }
    }

    /// Somebody left the class: if nobody is in it any more it is forgotten after a while.
    pub(crate) fn left(&mut self, id: ClassId) {
        if self.admission.class(id).is_used() {
            return;
        }
        if let Some(Some(entry)) = self.classes.entries.get_mut(id.0 as usize)
            && !entry.unused
        {
            entry.unused = true;
            self.classes.unused.push_back(id);
        }
        if self.classes.unused.len() > UNUSED_KEPT {
            self.forget_unused();
        }
    }

    fn forget_unused(&mut self) {
        let Some(id) = self.classes.unused.pop_front() else { return };
        let Some(slot) = self.classes.entries.get_mut(id.0 as usize) else { return };
        let Some(entry) = slot else { return };
        entry.unused = false;
        if self.admission.remove_class(id)
            && let Some(entry) = slot.take()
        {
            self.classes.forget(&entry);
        }
    }

    /// A change may make keys or tags count that did not before, or no longer: those tasks change class.
    fn move_to_new_sources(&mut self, now: Moment) {
        for node in self.nodes.ids() {
            self.move_to_new_source(node, now);
        }
    }

    fn move_to_new_source(&mut self, node: NodeId, now: Moment) {
        let task = TaskId::node(node);
        let (class, source, worker) = match self.nodes.get(&node) {
            Some(Node::Job(job)) => {
                let worker = job.work.running().map(|running| running.worker.clone());
                let source = self.job_source(&job.action, &job.key, job.queue());
                (job.work.class, Some(Source::Attempt(source)), worker)
            }
            Some(Node::Run(run)) => match run.class {
                Some(class) => (class, Some(self.run_source(&run.plan.flow.name, &run.key, &run.tags)), None),
                None => return,
            },
            Some(Node::Step(step)) => match &step.kind {
                Kind::Plain { work: Some(work), key, .. } => {
                    let worker = work.running().map(|running| running.worker.clone());
                    (work.class, self.step_source(node, key), worker)
                }
                Kind::Loop(_) => return self.move_items_to_new_sources(node, now),
                _ => return,
            },
            None => return,
        };
        let (Some(source), Some(entry)) = (source, self.classes.entry(class)) else { return };
        if *entry.source == source {
            return;
        }
        let holds = match self.nodes.get(&node) {
            Some(Node::Run(run)) => run.state == RunState::Running,
            _ => worker.is_some(),
        };
        if holds {
            self.hold_elsewhere(task, class, source, worker.as_ref());
        } else {
            self.step_out(node, now);
            self.step_in(node);
        }
    }

    fn move_items_to_new_sources(&mut self, node: NodeId, now: Moment) {
        let items = self.loop_of(node).into_iter().flat_map(|record| record.items.keys());
        let in_flight: Vec<TaskId> = items.map(|&index| TaskId::item(node, index)).collect();
        for task in in_flight {
            self.move_item_to_new_source(task, now);
        }
        let is_old = |segment: &Segment| {
            let entry = self.classes.entry(segment.class);
            entry.map(|entry| &*entry.source) != self.step_source(node, &segment.key).as_ref()
        };
        if self.loop_of(node).is_some_and(|items| items.segments.values().any(is_old)) {
            self.step_out(node, now);
            self.step_in(node);
        }
    }

    fn move_item_to_new_source(&mut self, task: TaskId, now: Moment) {
        let (Some(source), Some(work)) = (self.source_of(task), self.work(task)) else { return };
        let class = work.class;
        if self.classes.entry(class).is_some_and(|entry| *entry.source == source) {
            return;
        }
        match &work.at {
            WorkState::Running(running) => {
                let worker = running.worker.clone();
                self.hold_elsewhere(task, class, source, Some(&worker));
            }
            WorkState::Waiting => {
                self.withdraw(task, class, now);
                self.queue_again(task, Some(source));
            }
            WorkState::Inside(_) => self.hold_elsewhere(task, class, source, None),
            // Its class is found when its time has come.
            WorkState::Scheduled(_) => {}
        }
    }

    /// What a task holds is counted by another class from now on.
    fn hold_elsewhere(&mut self, task: TaskId, class: ClassId, source: Source, worker: Option<&Name>) {
        self.release(class, worker);
        let class = self.class_for(source);
        self.admission.hold(class, worker);
        self.set_class(task, class);
    }

    fn set_class(&mut self, task: TaskId, class: ClassId) {
        match self.nodes.get_mut(&task.node) {
            Some(Node::Run(run)) => run.class = Some(class),
            Some(node) => {
                if let Some(work) = node.work_mut(task) {
                    work.class = class;
                }
            }
            None => {}
        }
    }

    pub(crate) fn release(&mut self, id: ClassId, worker: Option<&Name>) {
        self.admission.release(id, worker);
        self.left(id);
    }

    /// Resolves everything anew after limits were declared, set or removed: who runs is counted where it now
    /// belongs, who waits asks for what it now needs.
    pub(crate) fn resolve_anew(&mut self, now: Moment) {
        self.classes.by_job.clear();
        self.move_to_new_sources(now);
        for id in self.classes.ids() {
            let Some(source) = self.classes.entry(id).map(|entry| entry.source.clone()) else { continue };
            let asks = self.catalog.resolve(&source);
            let demands = self.admission.demands(asks.iter().cloned());
            self.admission.change_demands(id, &demands, now);
            if let Some(Some(entry)) = self.classes.entries.get_mut(id.0 as usize) {
                entry.lease = self.catalog.lease(&source);
                entry.entrance = self.catalog.entrance(&source, &asks);
            }
            for ask in asks {
                if let Some(limit) = self.admission.find(&ask.key) {
                    self.admission.adopt(limit, ask.gauge, now);
                }
            }
            self.close_paused_limits(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::admission::{Skills, SlotCounts};
    use crate::ids::TaskId;
    use crate::model::{QUEUE_TAG, Requirement, Step, Work};
    use crate::protocol::{Command, Evaluation, Join, Payload, Submission, Submit};
    use crate::state::State;
    use crate::testkit::{Kit, action, doing, flow, job, rendered, run, step, template};

    fn submit_to(kit: &mut Kit, queue: &str, what: Submission) -> Submit {
        Submit { tags: vec![(QUEUE_TAG.into(), queue.into())], ..kit.submit(what) }
    }

    fn join(kit: &mut Kit, queue: &str) {
        let functions = vec!["work".into()];
        let skills = Skills { queues: vec![queue.into()], functions, ..Skills::plain() };
        let (worker, slots) = (queue.into(), SlotCounts { process: 9, io: 9 });
        kit.apply(Command::Join(Join { worker, incarnation: 1, skills, slots }));
    }

    #[test]
    fn a_job_goes_to_the_queue_it_was_submitted_to() {
        let mut kit = Kit::new(9);
        let state = |kit: &Kit, node| kit.state(TaskId::node(node));
        let everybodys = kit.job("work");
        let submit = submit_to(&mut kit, "mine", job("work"));
        let mine = kit.accepted(submit);
        let submit = submit_to(&mut kit, "", job("work"));
        let also_everybodys = kit.accepted(submit);
        assert_eq!(state(&kit, everybodys), Some(State::Running));
        assert_eq!(state(&kit, also_everybodys), Some(State::Running), "an empty name names no queue");
        assert_eq!(state(&kit, mine), Some(State::Waiting), "also while others have room");
        kit.declare(Vec::new(), vec![action("work", Some(20), &[])], None);
        assert_eq!(state(&kit, mine), Some(State::Waiting), "also after everything was resolved anew");
        join(&mut kit, "other");
        assert_eq!(state(&kit, mine), Some(State::Waiting));
        join(&mut kit, "mine");
        assert_eq!(state(&kit, mine), Some(State::Running));
    }

    #[test]
    fn steps_go_there_also_those_of_sub_flows_unless_they_name_a_queue() {
        let mut kit = Kit::new(9);
        let inside = doing("inside", Work::Flow { flow: "inner".into(), inputs: template() });
        let own = Requirement { queue: "gpu".into(), ..Requirement::process() };
        let elsewhere = Step { needs: own, ..step("elsewhere") };
        let outer = flow("outer", vec![step("plain"), inside, elsewhere]);
        kit.declare(vec![flow("inner", vec![step("deep")]), outer], Vec::new(), None);
        let submit = submit_to(&mut kit, "mine", run("outer"));
        let root = kit.accepted(submit);
        for index in [0, 2] {
            kit.answer_step(root, index, Evaluation::Order(rendered(None)));
        }
        let before = kit.core.next();
        kit.answer_step(root, 1, Evaluation::SubFlow { inputs: Payload::new("{}") });
        let inner = crate::ids::NodeId(before);
        kit.answer_step(inner, 0, Evaluation::Order(rendered(None)));
        let (plain, deep, elsewhere) = (root.step(0), inner.step(0), root.step(2));
        let states = |kit: &Kit| [plain, deep, elsewhere].map(|node| kit.state(TaskId::node(node)));
        assert_eq!(states(&kit), [Some(State::Waiting); 3]);
        join(&mut kit, "mine");
        assert_eq!(states(&kit), [Some(State::Running), Some(State::Running), Some(State::Waiting)]);
        join(&mut kit, "gpu");
        assert_eq!(states(&kit)[2], Some(State::Running));
    }
}
