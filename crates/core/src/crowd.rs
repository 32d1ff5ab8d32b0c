//! What newcomers meet at their own limit: whether it is busy, who gives way, what can never be granted.

use crate::admission::{Ask, Gauge, LimitId, LimitKey, Rank};
use crate::catalog::{Catalog, Source};
use crate::core::Core;
use crate::explain::describe;
use crate::ids::TaskId;
use crate::model::{WhenBusy, WhenExhausted};
use crate::nodes::Node;
use crate::protocol::{Refusal, Stop};
use crate::state::State;
use crate::time::Moment;
use std::borrow::Cow;

/// What newcomers to a class meet. It follows from what is declared and set, so it is found out once for all of
/// them, and again when that changes.
#[derive(Clone, Debug)]
pub(crate) struct Entrance {
    /// The limit at which `when_busy` acts: the action's or the flow's own.
    own: Option<LimitKey>,
    /// In the order in which demands are tried. Nearly always there are none.
    hurdles: Vec<Hurdle>,
}

#[derive(Clone, Debug)]
enum Hurdle {
    /// This can never be granted.
    Never(Refusal),
    /// A rate or quota that says `reject`.
    Pace(LimitKey),
}

impl LimitKey {
    /// Whether `when_busy` acts at this limit: it is the action's or flow's own.
    pub(crate) fn is_own(&self) -> bool {
        matches!(self, LimitKey::Flow { .. } | LimitKey::Action(_) | LimitKey::ActionKey { .. })
    }
}

impl Entrance {
    /// Why nobody with this source can ever be granted.
    pub fn never(&self) -> Option<Refusal> {
        self.hurdles.iter().find_map(|hurdle| match hurdle {
            Hurdle::Never(refusal) => Some(refusal.clone()),
            Hurdle::Pace(_) => None,
        })
    }
}

/// Who gives way to a newcomer.
pub(crate) enum Crowd {
    Nobody,
    /// They end; the newcomer takes the place of the first.
    Waiting(Vec<Rank>),
    /// They are told to stop; the newcomer takes the place of the first.
    Running(Vec<TaskId>),
}

impl Crowd {
    /// Whether there is one less in line when they have given way.
    pub fn leaves_the_line(&self) -> bool {
        matches!(self, Crowd::Waiting(waiting) if !waiting.is_empty())
    }
}

impl Catalog {
    /// What newcomers meet whose demands are resolved from `source` to `asks`.
    pub fn entrance(&self, source: &Source, asks: &[Ask]) -> Entrance {
        let own = asks.iter().map(|ask| &ask.key).find(|key| key.is_own()).cloned();
        if let Source::Attempt(attempt) = source
            && let Some((pool, _)) = attempt.pools.iter().find(|(pool, _)| self.pool(pool).is_none())
        {
            return Entrance { own, hurdles: vec![Hurdle::Never(Refusal::UnknownPool(pool.clone()))] };
        }
        let mut asks: Vec<&Ask> = asks.iter().collect();
        asks.sort_by(|a, b| a.key.cmp(&b.key));
        let same = asks.chunk_by(|a, b| a.key == b.key);
        Entrance { own, hurdles: same.filter_map(|same| self.hurdle(same)).collect() }
    }

    /// What stands in the way at one limit, which is asked for once or more often.
    fn hurdle(&self, same: &[&Ask]) -> Option<Hurdle> {
        let (key, units) = (&same[0].key, same.iter().map(|ask| ask.units).sum::<u32>());
        let (capacity, when_exhausted) = match &same[0].gauge {
            Gauge::Units { capacity, .. } => {
                let declared = self.declared_units(key);
                (declared.map_or(*capacity, |units| units.max(*capacity)), WhenExhausted::Wait)
            }
            Gauge::Rate(rate) => (u64::from(rate.policy().burst), rate.policy().when_busy),
            Gauge::Quota(quota) => (u64::from(quota.policy().limit), quota.policy().when_busy),
            Gauge::Slots(_) => return None,
        };
        // A closed limit lets its waiters wait: it may be opened again. What is too small never fits.
        if u64::from(units) > capacity && capacity > 0 {
            let (limit, declared) = (describe(key), self.origin(key));
            return Some(Hurdle::Never(Refusal::TooWide { limit, units, capacity, declared }));
        }
        (when_exhausted == WhenExhausted::Reject).then(|| Hurdle::Pace(key.clone()))
    }

    fn declared_units(&self, key: &LimitKey) -> Option<u64> {
        match key {
            LimitKey::Pool(pool) => self.pool(pool).map(|pool| u64::from(pool.slots)),
            _ => None,
        }
    }
}

impl Core {
    /// What newcomers with that source meet, whether or not their class exists.
    pub(crate) fn entrance(&self, source: &Source) -> Cow<'_, Entrance> {
        match self.classes.find(source).and_then(|class| self.classes.entry(class)) {
            Some(entry) => Cow::Borrowed(&entry.entrance),
            None => Cow::Owned(self.catalog.entrance(source, &self.catalog.resolve(source))),
        }
    }

    /// The limit at which `when_busy` acts: the action's or the flow's own.
    pub(crate) fn own_limit(&self, source: &Source) -> Option<LimitKey> {
        self.entrance(source).own.clone()
    }

    /// Whether the limit would refuse a newcomer of that rank.
    pub(crate) fn is_busy(&self, key: &LimitKey, rank: Rank, now: Moment) -> bool {
        self.admission.find(key).is_some_and(|limit| {
            self.admission.limit(limit).paused || !self.admission.accepts(limit, rank, 1, now)
        })
    }

    /// Why a submission can never be granted, or not now where its pace says reject.
    pub(crate) fn refusal(&self, source: &Source, now: Moment) -> Option<Refusal> {
        self.refusal_at(&self.entrance(source), now)
    }

    pub(crate) fn refusal_at(&self, entrance: &Entrance, now: Moment) -> Option<Refusal> {
        entrance.hurdles.iter().find_map(|hurdle| match hurdle {
            Hurdle::Never(refusal) => Some(refusal.clone()),
            Hurdle::Pace(key) => self.is_exhausted(key, now).then(|| self.busy_at(key)),
        })
    }

    pub(crate) fn busy_at(&self, key: &LimitKey) -> Refusal {
        Refusal::Busy { limit: describe(key), declared: self.catalog.origin(key) }
    }

    /// The same for a step, as a sentence.
    pub(crate) fn refuses(&self, source: &Source) -> Option<String> {
        self.refusal(source, self.now).map(|refusal| refusal.to_string())
    }

    /// Whether a rate or quota has nothing left for who comes last.
    fn is_exhausted(&self, key: &LimitKey, now: Moment) -> bool {
        let last = Rank::new(i8::MIN, u64::MAX, TaskId::node(crate::ids::NodeId(u64::MAX)));
        self.admission.find(key).is_some_and(|limit| !self.admission.accepts(limit, last, 1, now))
    }

    /// Root tasks that wait at a limit.
    fn waiting_roots(&self, limit: LimitId) -> impl Iterator<Item = Rank> {
        let classes = self.admission.users(limit).map(|class| self.admission.class(class));
        let ranks = classes.flat_map(|class| class.ranges().map(|(rank, _)| rank));
        ranks.filter(|rank| self.is_root(rank.task()))
    }

    fn is_root(&self, task: TaskId) -> bool {
        match self.nodes.get(&task.node) {
            Some(Node::Job(_)) => true,
            Some(Node::Run(run)) => run.parent.is_none(),
            _ => false,
        }
    }

    /// What a newcomer does about a busy limit of its own. This only decides: see [`Core::give_way`].
    pub(crate) fn crowd(
        &self,
        source: &Source,
        when_busy: WhenBusy,
        rank: Rank,
        now: Moment,
    ) -> Result<Crowd, Refusal> {
        let Some(own) = self.own_limit(source) else { return Ok(Crowd::Nobody) };
        let Some(limit) = self.admission.find(&own) else { return Ok(Crowd::Nobody) };
        if !self.is_busy(&own, rank, now) {
            return Ok(Crowd::Nobody);
        }
        Ok(match when_busy {
            WhenBusy::Queue => Crowd::Nobody,
            WhenBusy::Reject => return Err(self.busy_at(&own)),
            WhenBusy::Replace => {
                let mut waiting: Vec<Rank> = self.waiting_roots(limit).collect();
                waiting.sort_unstable();
                Crowd::Waiting(waiting)
            }
            WhenBusy::CancelRunning => Crowd::Running(self.who_must_stop(limit, source, rank, now)),
        })
    }

    /// Ends or stops who has to give way, and says whose place in line the newcomer takes.
    pub(crate) fn give_way(&mut self, crowd: Crowd, now: Moment) -> Option<u64> {
        match crowd {
            Crowd::Nobody => None,
            Crowd::Waiting(waiting) => {
                for rank in &waiting {
                    let error = Some("a newer one took its place in line".to_owned());
                    self.end_unstarted(rank.task().node, State::Replaced, error, now);
                }
                waiting.first().map(|rank| rank.root())
            }
            Crowd::Running(running) => {
                let first = running.first().map(|&task| self.rank(task).root());
                for task in running {
                    match self.nodes.get(&task.node) {
                        Some(Node::Run(_)) => self.stop_run(task.node, Stop::Superseded, now),
                        _ => self.stop_running(task, Stop::Superseded, now),
                    }
                }
                first
            }
        }
    }

    /// The longest-running tasks of the newcomer's key, as few as make room. Nobody, if that would not let it start.
    fn who_must_stop(&self, own: LimitId, source: &Source, rank: Rank, now: Moment) -> Vec<TaskId> {
        let others = self.catalog.resolve(source).into_iter();
        let refused_elsewhere = others
            .filter_map(|ask| Some((self.admission.find(&ask.key)?, ask.units)))
            .any(|(limit, units)| limit != own && !self.admission.accepts(limit, rank, units, now));
        let limit = self.admission.limit(own);
        let is_closed = limit.paused || matches!(limit.gauge, Gauge::Units { capacity: 0, .. });
        if refused_elsewhere || is_closed {
            return Vec::new();
        }
        let mut running = self.running_at(own);
        running.sort_unstable();
        let stopping = running.iter().filter(|(_, _, stopping)| *stopping).count() as i64;
        // Of each class only the first stands in line; those behind it need room, too.
        let ahead = self.waiting_roots(own).filter(|waiting| *waiting < rank).take(running.len()).count();
        let free = self.admission.free_for(own, rank, now).min(limit.unused(now) - ahead as i64);
        let needed = 1 - free - stopping;
        let others = running.into_iter().filter(|(_, _, stopping)| !stopping);
        others.take(usize::try_from(needed).unwrap_or(0)).map(|(_, task, _)| task).collect()
    }

    /// Root tasks that hold units of a limit: since when, and whether they were told to stop.
    fn running_at(&self, limit: LimitId) -> Vec<(Moment, TaskId, bool)> {
        let names = |class| self.admission.class(class).demands.iter().any(|demand| demand.limit == limit);
        let tasks = self.workers.iter().flat_map(|(_, worker)| worker.attempts.keys());
        let jobs = tasks.filter_map(|task| match self.nodes.get(&task.node)? {
            Node::Job(job) => {
                let running = job.work.running().filter(|_| names(job.work.class))?;
                Some((running.granted, *task, running.stop.is_some()))
            }
            _ => None,
        });
        let runs = self.begun.iter().filter_map(|&node| {
            let run = self.run(node).filter(|run| run.class.is_some_and(names))?;
            Some((run.since, TaskId::node(node), run.stop.is_some()))
        });
        jobs.chain(runs).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::ids::TaskId;
    use crate::model::{WhenBusy, WhenFull};
    use crate::protocol::{Answer, Command, Effect, Stop, Submit, Write};
    use crate::state::State;
    use crate::testkit::{Kit, action, flow, job, rendered, run, step};
    use crate::time::Span;

    fn busy(kit: &mut Kit, concurrency: u32, when_busy: WhenBusy) {
        let mut action = action("work", Some(concurrency), &[]);
        action.policy.when_busy = when_busy;
        kit.declare(vec![flow("one", vec![step("a")])], vec![action], None);
    }

    #[test]
    fn steps_are_neither_replaced_nor_superseded() {
        for when_busy in [WhenBusy::Replace, WhenBusy::CancelRunning] {
            let mut kit = Kit::new(9);
            busy(&mut kit, 1, when_busy);
            let runs = [kit.run("one"), kit.run("one")];
            for run in runs {
                kit.answer_step(run, 0, crate::protocol::Evaluation::Order(rendered(None)));
            }
            let newcomer = kit.job("work");
            let tasks = [runs[0].step(0), runs[1].step(0), newcomer].map(TaskId::node);
            let states = tasks.map(|task| kit.state(task));
            assert_eq!(states, [Some(State::Running), Some(State::Waiting), Some(State::Waiting)]);
            assert!(!kit.effects.iter().any(|effect| matches!(effect, Effect::Stop { .. })));
        }
    }

    #[test]
    fn as_few_as_make_room_are_told_to_stop_longest_first() {
        let mut kit = Kit::new(9);
        busy(&mut kit, 2, WhenBusy::CancelRunning);
        let first = kit.job("work");
        kit.now = kit.now + Span::seconds(1);
        let second = kit.job("work");
        let third = kit.job("work");
        let stopping = |node| Write::Stopping {
            task: TaskId::node(node),
            why: Stop::Superseded,
            error: None,
            at: kit.now,
        };
        assert!(kit.writes.contains(&stopping(first)));
        assert!(!kit.writes.contains(&stopping(second)));
        let root = kit.writes.iter().find_map(|write| match write {
            Write::NodeAdded(row) if row.node == third => Some(row.root),
            _ => None,
        });
        assert_eq!(root, Some(first.0), "it takes the place of the first");
    }

    #[test]
    fn nobody_is_told_to_stop_while_the_limit_is_paused_or_another_refuses() {
        let mut kit = Kit::new(1);
        busy(&mut kit, 1, WhenBusy::CancelRunning);
        kit.job("work");
        kit.job("work");
        let stops =
            |kit: &Kit| kit.effects.iter().filter(|effect| matches!(effect, Effect::Stop { .. })).count();
        assert_eq!(stops(&kit), 0, "the worker has no slot either");
    }

    #[test]
    fn a_paused_limit_is_busy() {
        let mut kit = Kit::new(9);
        busy(&mut kit, 1, WhenBusy::Reject);
        let key = crate::admission::LimitKey::Action("work".into());
        let node = kit.job("work");
        kit.succeed(TaskId::node(node));
        kit.apply(Command::Pause(crate::protocol::Pausable::Limit(key)));
        let submit = kit.submit(job("work"));
        assert!(matches!(kit.apply(Command::Submit(submit)), Answer::Refused(_)));
    }

    #[test]
    fn the_best_of_several_gives_its_place_to_who_replaces_them() {
        let mut kit = Kit::new(9);
        busy(&mut kit, 1, WhenBusy::Queue);
        kit.job("work");
        let low = kit.job("work");
        let high = Submit { priority: 5, ..kit.submit(job("work")) };
        let high = kit.accepted(high);
        busy(&mut kit, 1, WhenBusy::Replace);
        let newcomer = kit.job("work");
        for node in [low, high] {
            assert_eq!(kit.ended(node).map(|(state, _)| state), Some(State::Replaced));
        }
        let root = |write: &Write| matches!(write, Write::NodeAdded(row) if row.node == newcomer && row.root == high.0);
        assert!(kit.writes.iter().any(root));
    }

    #[test]
    fn runs_have_a_crowd_of_their_own() {
        let mut kit = Kit::new(9);
        let mut one = flow("one", vec![step("a")]);
        (one.concurrency, one.when_busy) = (Some(1), WhenBusy::CancelRunning);
        kit.declare(vec![one], Vec::new(), None);
        let first = kit.run("one");
        let second = kit.submit(run("one"));
        kit.accepted(second);
        assert_eq!(kit.ended(first).map(|(state, _)| state), Some(State::Cancelled), "nothing of it ran yet");
    }

    #[test]
    fn the_oldest_of_a_full_line_is_dropped_even_if_it_is_scheduled() {
        let mut kit = Kit::new(0);
        let mut work = action("work", None, &[]);
        (work.policy.line.max_length, work.policy.line.when_full) = (1, WhenFull::DropOldest);
        kit.declare(Vec::new(), vec![work], None);
        let due = Some(kit.now + Span::hours(1));
        let later = Submit { due, ..kit.submit(job("work")) };
        let later = kit.accepted(later);
        kit.job("work");
        assert_eq!(kit.ended(later).map(|(state, _)| state), Some(State::Refused));
    }
}
