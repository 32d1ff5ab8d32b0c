//! The rules of admission were first written as an executable model in another language and fuzzed there against
//! a naive twin. These are recordings of its random sequences: after every command, who started on which worker,
//! and where every head is parked. The core must decide the same.
//!
//! `TIDEGATE_MODEL_TRACE=file` replays another recording.

use std::collections::BTreeMap;
use tidegate_core::admission::{
    Admission, Ask, ClassId, Demand, Gauge, Level, LimitKey, Rank, Rules, Skills, SlotCounts,
};
use tidegate_core::ids::{Name, NodeId, TaskId};
use tidegate_core::model::{Requirement, SlotKind};
use tidegate_core::time::Moment;

const NOW: Moment = Moment(0);

struct Task {
    rank: Rank,
    demands: Vec<String>,
    class: ClassId,
    worker: Option<Name>,
}

/// Plays the model's commands on the core's admission.
#[derive(Default)]
struct Player {
    admission: Admission,
    capacity: BTreeMap<String, u64>,
    classes: BTreeMap<Vec<Demand>, ClassId>,
    waiting: BTreeMap<u64, Task>,
    running: BTreeMap<u64, Task>,
}

impl Player {
    fn key(limit: &str) -> LimitKey {
        match limit.strip_prefix("slot:") {
            None => LimitKey::Pool(limit.into()),
            Some(labels) => {
                LimitKey::Slot(Requirement { labels: split_labels(labels), ..Requirement::process() })
            }
        }
    }

    fn gauge(&self, limit: &str) -> Gauge {
        match self.capacity.get(limit) {
            Some(&capacity) => Gauge::Units { capacity, used: 0 },
            None => Gauge::Slots(SlotKind::Process),
        }
    }

    fn command(&mut self, words: &[&str]) -> Vec<String> {
        let number = |word: &str| word.parse::<u64>().unwrap();
        let mut budget = self.admission.begin();
        match words {
            ["submit", id, priority, sequence, demands @ ..] => {
                self.submit(number(id), priority.parse().unwrap(), number(sequence), demands);
            }
            ["finish", id] => {
                let task = self.running.remove(&number(id)).unwrap();
                self.admission.release(task.class, task.worker.as_ref());
            }
            ["cancel", id] => {
                let task = self.waiting.remove(&number(id)).unwrap();
                assert!(self.admission.withdraw(task.class, task.rank, NOW));
            }
            ["set_priority", id, priority] => self.set_priority(number(id), priority.parse().unwrap()),
            ["set_capacity", limit, capacity] => {
                self.capacity.insert(limit.to_string(), number(capacity));
                if let Some(id) = self.admission.find(&Self::key(limit)) {
                    self.admission.set_capacity(id, number(capacity), NOW);
                }
            }
            [verb @ ("pause" | "resume"), limit] => {
                let gauge = self.gauge(limit);
                let id = self.admission.ensure(&Self::key(limit), || gauge);
                self.admission.set_paused(id, *verb == "pause", NOW);
            }
            ["worker", name, labels, slots] => self.set_worker(name, labels, slots),
            ["reload"] => self.admission.forget_places(NOW),
            other => panic!("unknown command {other:?}"),
        }
        std::iter::from_fn(|| self.start_next(&mut budget)).collect()
    }

    fn submit(&mut self, id: u64, priority: i8, sequence: u64, demands: &[&str]) {
        let asks: Vec<Ask> = demands
            .iter()
            .map(|demand| {
                let (limit, units) = demand.split_once('=').unwrap();
                Ask { key: Self::key(limit), units: units.parse().unwrap(), gauge: self.gauge(limit) }
            })
            .collect();
        let resolved = self.admission.demands(asks);
        let class = *self
            .classes
            .entry(resolved)
            .or_insert_with_key(|resolved| self.admission.add_class(Level::Attempt, resolved));
        let rank = Rank::new(priority, sequence, TaskId::node(NodeId(id)));
        self.admission.enqueue(class, rank, 1);
        let demands = demands.iter().map(|demand| demand.to_string()).collect();
        self.waiting.insert(id, Task { rank, demands, class, worker: None });
    }

    fn set_priority(&mut self, id: u64, priority: i8) {
        let task = self.waiting.remove(&id).unwrap();
        assert!(self.admission.withdraw(task.class, task.rank, NOW));
        let demands: Vec<&str> = task.demands.iter().map(String::as_str).collect();
        self.submit(id, priority, task.rank.root(), &demands);
    }

    fn set_worker(&mut self, name: &str, labels: &str, slots: &str) {
        let labels = split_labels(if labels == "-" { "" } else { labels });
        let slots = SlotCounts { process: slots.parse().unwrap(), io: 0 };
        self.admission.set_worker(&name.into(), Skills { labels, ..Skills::plain() }, slots, NOW);
    }

    fn start_next(&mut self, budget: &mut u32) -> Option<String> {
        let grant = self.admission.next_grant(Level::Attempt, NOW, budget)?;
        let id = grant.rank.task().node.0;
        let task = self.waiting.remove(&id).unwrap();
        let text = grant.worker.as_ref().map_or(id.to_string(), |worker| format!("{id}@{worker}"));
        self.running.insert(id, Task { worker: grant.worker, ..task });
        Some(text)
    }

    fn parked(&self) -> Vec<String> {
        let mut places: Vec<_> = self
            .admission
            .classes()
            .filter_map(|(_, class)| Some((class.place()?, class)))
            .map(|(place, class)| {
                let at = match &self.admission.limit(class.demands[place.at].limit).key {
                    LimitKey::Pool(name) => name.to_string(),
                    LimitKey::Slot(need) => format!("slot/{}", join_labels(&need.labels)),
                    other => panic!("unexpected limit {other}"),
                };
                let reserves = if place.reserves { "r" } else { "" };
                let id = place.head.task().node.0;
                (id, format!("{id}:{at}:{}{reserves}", place.moves))
            })
            .collect();
        places.sort();
        places.into_iter().map(|(_, text)| text).collect()
    }
}

fn split_labels(labels: &str) -> Vec<Name> {
    labels.split('+').filter(|label| !label.is_empty()).map(Name::new).collect()
}

fn join_labels(labels: &[Name]) -> String {
    labels.iter().map(Name::as_str).collect::<Vec<_>>().join("+")
}

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

#[test]
fn the_core_decides_as_the_model_did() {
    let text = match std::env::var("TIDEGATE_MODEL_TRACE") {
        Ok(file) => std::fs::read_to_string(file).unwrap(),
        Err(_) => include_str!("model/model.trace").to_owned(),
    };
    let mut lines = text.lines().peekable();
    let (mut player, mut seed, mut seeds, mut commands) = (Player::default(), "", 0, 0);
    while let Some(line) = lines.next() {
        match words(line).as_slice() {
            ["seed", _] => (seed, seeds) = (line, seeds + 1),
            ["rules", after, reservers, share] => {
                let rules = Rules {
                    reserve_after: after.parse().unwrap(),
                    reservers: reservers.parse().unwrap(),
                    share: share.parse().unwrap(),
                    walk_max: u32::MAX,
                };
                player = Player { admission: Admission::new(rules), ..Player::default() };
            }
            ["limit", limit, capacity] => {
                player.capacity.insert(limit.to_string(), capacity.parse().unwrap());
            }
            ["worker", name, labels, slots] => player.set_worker(name, labels, slots),
            [">", command @ ..] => {
                commands += 1;
                let started = player.command(command);
                let expected = |name: &str, lines: &mut std::iter::Peekable<std::str::Lines<'_>>| {
                    let line = lines.next_if(|line| line.starts_with(name));
                    line.map_or(Vec::new(), |line| words(line)[1..].iter().map(|w| w.to_string()).collect())
                };
                let expected_starts = expected("started ", &mut lines);
                assert_eq!(started, expected_starts, "{seed}, command {commands}: {line}");
                let expected_places = expected("parked ", &mut lines);
                assert_eq!(player.parked(), expected_places, "{seed}, command {commands}: {line}");
            }
            other => panic!("unknown line {other:?}"),
        }
    }
    println!("{seeds} seeds, {commands} commands");
    assert!(seeds >= 60 && commands > 8_000, "the recording is whole: {seeds} seeds, {commands} commands");
}
