//! The limits that refuse a task now, and who holds them.

use super::{Blocker, Holder, Why};
use crate::admission::{ClassId, Demand, Gauge, LimitId, LimitKey, Rank};
use crate::core::Core;
use crate::ids::{NodeId, TaskId};
use crate::model::Origin;
use crate::nodes::{Item, Kind, Step, WorkState};
use crate::time::{Moment, Span};

impl Core {
    pub(super) fn blockers(&self, class: ClassId, rank: Rank, since: Moment, now: Moment) -> Vec<Blocker> {
        let record = self.admission.class(class);
        let waited = record.waited_under(since, now);
        let parked = record.place().map(|place| place.at);
        let ahead = record.ahead_of(rank);
        let refusing = record.demands.iter().enumerate().filter_map(|(at, demand)| {
            let why = self.why(*demand, rank, now);
            // Who stands behind others of its kind waits for what they are parked under.
            let why =
                why.or_else(|| (ahead > 0 && parked == Some(at)).then(|| self.fullness(*demand, rank, now)));
            let before =
                |rank| record.ahead_of(rank) + self.admission.others_before(demand.limit, class, rank);
            let (ahead, above) = (before(rank), before(Rank::best_of(rank.priority())));
            Some(Blocker { ahead, above, waited: waited[at], ..self.blocker(*demand, why?, now) })
        });
        refusing.collect()
    }

    /// Why a limit refuses this rank now, if it does.
    fn why(&self, demand: Demand, rank: Rank, now: Moment) -> Option<Why> {
        let limit = self.admission.limit(demand.limit);
        if limit.paused {
            return Some(Why::Paused);
        }
        if self.admission.sends_aside(demand.limit, demand.units) {
            return Some(match limit.key {
                LimitKey::Slot(_) => Why::NoWorker,
                _ => Why::TooSmall { capacity: if limit.is_closed() { 0 } else { limit.capacity() } },
            });
        }
        let refuses = !self.admission.accepts(demand.limit, rank, demand.units, now);
        refuses.then(|| self.fullness(demand, rank, now))
    }

    fn fullness(&self, demand: Demand, rank: Rank, now: Moment) -> Why {
        let limit = self.admission.limit(demand.limit);
        match (&limit.gauge, &limit.key) {
            (Gauge::Units { capacity, used }, _) => {
                let unused = limit.unused(now).max(0);
                // Those before it may ask for more than there is: no more is kept for them.
                let set_aside = (unused - self.admission.free_for(demand.limit, rank, now)).clamp(0, unused);
                Why::Full { capacity: *capacity, used: *used, set_aside: set_aside as u64 }
            }
            (_, LimitKey::Slot(need)) => Why::SlotsTaken { slots: self.admission.slots().capacity(need) },
            _ => Why::Pace { next: limit.available_at(i64::from(demand.units), now).unwrap_or(now) },
        }
    }

    fn blocker(&self, demand: Demand, why: Why, now: Moment) -> Blocker {
        let limit = self.admission.limit(demand.limit);
        Blocker {
            limit: limit.key.clone(),
            why,
            units: demand.units,
            ahead: 0,
            above: 0,
            // Nobody gives back what it took from a rate or quota.
            holders: if limit.is_pace() { Vec::new() } else { self.holders(demand.limit, now) },
            origin: self.origin(&limit.key),
            declared: self.declared_capacity(&limit.key),
            set: self.catalog.settings.get(&limit.key).and_then(|setting| setting.set.clone()),
            waited: Span::ZERO,
        }
    }

    /// Where the declared value of a limit stands in the files, if it does.
    pub(crate) fn origin(&self, key: &LimitKey) -> Origin {
        match key {
            LimitKey::Steps(run) => self.run(*run).map(|run| run.plan.flow.parallel_origin()),
            LimitKey::Window(step) => self.window_origin(*step),
            _ => Some(self.catalog.origin(key)),
        }
        .unwrap_or_default()
    }

    fn window_origin(&self, step: NodeId) -> Option<Origin> {
        let run = self.run(self.step(step)?.run)?;
        Some(run.plan.flow.window_origin(self.step_model(step)?))
    }

    pub(crate) fn declared_capacity(&self, key: &LimitKey) -> Option<u64> {
        match key {
            LimitKey::Pool(pool) => self.catalog.pool(pool).map(|pool| u64::from(pool.slots)),
            LimitKey::Runs => self.catalog.limits.runs.map(u64::from),
            LimitKey::Action(action) | LimitKey::ActionKey { action, .. } => {
                self.catalog.each(action).concurrency.map(u64::from)
            }
            _ => None,
        }
    }

    /// Who holds units of a limit, longest first.
    pub(crate) fn holders(&self, limit: LimitId, now: Moment) -> Vec<Holder> {
        let attempts = self.workers.iter().flat_map(|(_, worker)| worker.attempts.keys());
        let attempts = attempts.filter_map(|&task| self.holder(task, limit, now));
        let begun = self.begun.iter().filter_map(|&node| Some((node, self.run(node)?)));
        let runs = begun.filter_map(|(node, run)| self.outer_holder(node, run.class, run.since, limit));
        // Steps hold nothing but places of their run.
        let run = match self.admission.limit(limit).key {
            LimitKey::Steps(run) => self.run(run).map(|state| (run, state.steps.len())),
            _ => None,
        };
        let steps = run.into_iter().flat_map(|(run, count)| (0..count).map(move |index| run.step(index)));
        let steps = steps.filter_map(|node| Some((node, self.step(node).filter(|step| step.entered)?)));
        let steps = steps.filter_map(|(node, step)| self.outer_holder(node, step.class, step.since, limit));
        let items = self.items_inside(limit);
        let mut holders: Vec<Holder> = attempts.chain(runs).chain(steps).chain(items).collect();
        holders.sort_by(|a, b| (a.since, &a.name).cmp(&(b.since, &b.name)));
        holders
    }

    /// Items with a flow inside hold nothing but their window.
    fn items_inside(&self, limit: LimitId) -> Vec<Holder> {
        let LimitKey::Window(node) = self.admission.limit(limit).key else { return Vec::new() };
        let items = self.loop_of(node).into_iter().flat_map(|record| &record.items);
        let inside = items.filter(|(_, item)| item.work.inside().is_some());
        let holder = |(&index, item): (&u32, &Item)| Holder {
            name: self.name(TaskId::item(node, index)),
            units: 1,
            since: item.work.since,
            worker: None,
            lease_left: None,
            waits: false,
        };
        inside.map(holder).collect()
    }

    fn units_held(&self, class: ClassId, limit: LimitId) -> Option<u32> {
        let demands = self.admission.class(class).demands.iter();
        demands.clone().find(|demand| demand.limit == limit).map(|demand| demand.units)
    }

    fn holder(&self, task: TaskId, limit: LimitId, now: Moment) -> Option<Holder> {
        let work = self.work(task)?;
        let running = work.running()?;
        Some(Holder {
            units: self.units_held(work.class, limit)?,
            name: self.name(task),
            since: running.granted,
            worker: Some(running.worker.clone()),
            lease_left: Some(running.until.since(now)),
            waits: false,
        })
    }

    /// Whether it is a step of one piece of work that is not granted yet.
    fn is_in_line(&self, node: NodeId) -> bool {
        let waits = |step: &Step| match &step.kind {
            Kind::Plain { work: Some(work), .. } => matches!(work.at, WorkState::Waiting),
            _ => false,
        };
        self.step(node).is_some_and(waits)
    }

    fn outer_holder(
        &self,
        node: NodeId,
        class: Option<ClassId>,
        since: Moment,
        limit: LimitId,
    ) -> Option<Holder> {
        let units = self.units_held(class?, limit)?;
        let (name, waits) = (self.name(TaskId::node(node)), self.is_in_line(node));
        Some(Holder { name, units, since, worker: None, lease_left: None, waits })
    }
}
