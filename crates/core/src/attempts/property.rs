//! The machine under arbitrary deliveries, answers, ends and pauses, judged by a plain book of what happened.

use super::*;
use crate::ids::{Epoch, NodeId, TaskId};
use crate::protocol::Payload;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const LENGTH: Span = Span::seconds(1);

#[derive(Clone, Debug)]
enum Input {
    Receive {
        task: u64,
        grant: u64,
        waited: u64,
        ago: u64,
    },
    Stop {
        task: u64,
        grant: u64,
    },
    Beat,
    /// An answer to one of the heartbeats sent so far: lost ones are never drawn, repeated ones may be.
    Answer {
        which: prop::sample::Index,
        stop: bool,
    },
    End {
        which: prop::sample::Index,
        outcome: u8,
    },
    Acknowledge {
        which: prop::sample::Index,
    },
    Tick,
    Pass {
        millis: u64,
    },
    Rejoin,
    Drain,
    ShutDown,
}

fn input() -> impl Strategy<Value = Input> {
    let (task, grant) = (0..3u64, 0..12u64);
    prop_oneof![
        8 => (task.clone(), grant.clone(), 0..300u64, 0..900u64)
            .prop_map(|(task, grant, waited, ago)| Input::Receive { task, grant, waited, ago }),
        2 => (task, grant).prop_map(|(task, grant)| Input::Stop { task, grant }),
        3 => Just(Input::Beat),
        5 => (any::<prop::sample::Index>(), prop::bool::weighted(0.2))
            .prop_map(|(which, stop)| Input::Answer { which, stop }),
        6 => (any::<prop::sample::Index>(), 0..3u8).prop_map(|(which, outcome)| Input::End { which, outcome }),
        3 => any::<prop::sample::Index>().prop_map(|which| Input::Acknowledge { which }),
        6 => Just(Input::Tick),
        6 => (0..400u64).prop_map(|millis| Input::Pass { millis }),
        1 => Just(Input::Rejoin),
        1 => prop::bool::weighted(0.1).prop_map(|yes| if yes { Input::Drain } else { Input::Tick }),
        1 => prop::bool::weighted(0.1).prop_map(|yes| if yes { Input::ShutDown } else { Input::Tick }),
    ]
}

/// What an onlooker at the runner and on the wire would write down.
#[derive(Default)]
struct Book {
    now: Moment,
    /// Deadlines of what the runner has.
    live: BTreeMap<Lease, Moment>,
    started: BTreeSet<Lease>,
    given_up: BTreeSet<Lease>,
    unacknowledged: BTreeSet<Lease>,
    /// Succeeded at the runner before its deadline, and not given up.
    well_ended: BTreeSet<Lease>,
    beats: Vec<(Moment, Heartbeat)>,
    /// The last moment at which the engine may have delivered a lease that is over: copies come later, but
    /// they were sent by then.
    over: BTreeMap<Lease, Moment>,
}

impl Book {
    fn end(&mut self, lease: Lease, last: Moment) {
        let known = self.over.entry(lease).or_insert(last);
        *known = last.min(*known);
    }

    /// A newer grant: the engine is done with all older ones of the task.
    fn granted(&mut self, lease: Lease) {
        let older = (0..lease.epoch.grant).map(|grant| Epoch { grant, ..lease.epoch });
        for epoch in older {
            self.end(Lease { epoch, ..lease }, self.now);
        }
    }

    fn write(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Start { attempt, deadline, .. } => {
                    let task = attempt.lease.task;
                    assert!(!self.live.keys().any(|live| live.task == task), "two live attempts of {task:?}");
                    assert!(self.started.insert(attempt.lease), "{:?} started twice", attempt.lease);
                    assert!(deadline > self.now, "started after its deadline");
                    self.live.insert(attempt.lease, deadline);
                }
                Action::Extend { lease, deadline } => {
                    assert!(!self.given_up.contains(&lease), "a renewal revived {lease:?}");
                    let old = self.live.insert(lease, deadline).expect("extends what is live");
                    assert!(self.now < old && old < deadline);
                }
                Action::Stop { lease, reason } => {
                    assert!(self.live.contains_key(&lease));
                    if reason == StopReason::Superseded {
                        self.given_up.insert(lease);
                    }
                }
                Action::Abandon { lease } => {
                    assert!(self.live[&lease] <= self.now, "given up early");
                    assert!(self.given_up.insert(lease), "given up twice");
                    self.end(lease, lease_end(self.live[&lease]));
                }
                Action::Report { lease, outcome } => {
                    assert!(!self.live.contains_key(&lease), "reported while the runner has it");
                    assert!(!self.given_up.contains(&lease), "reported after it was given up");
                    if matches!(outcome, Outcome::Succeeded(_)) {
                        assert!(self.well_ended.contains(&lease), "success of what did not end well in time");
                    }
                    self.unacknowledged.insert(lease);
                }
                Action::Heartbeat(beat) => self.beat(beat),
            }
        }
    }

    fn beat(&mut self, beat: Heartbeat) {
        for lease in self.live.keys().filter(|lease| !self.given_up.contains(lease)) {
            assert!(beat.has.contains(lease), "{lease:?} is missing from a heartbeat");
        }
        for lease in &beat.has {
            assert!(!self.given_up.contains(lease), "{lease:?} was given up and is still listed");
        }
        self.beats.push((self.now, beat));
    }
}

/// When the engine takes a lease away whose worker must be done by `deadline`.
fn lease_end(deadline: Moment) -> Moment {
    deadline - Terms::new(LENGTH, GRACE).usable() + LENGTH
}

fn attempt(lease: Lease) -> Attempt {
    Attempt { lease, order: Payload::null(), length: LENGTH, left: LENGTH, number: 1 }
}

fn step(attempts: &mut Attempts, book: &mut Book, input: Input) {
    let now = book.now;
    let lease =
        |task, grant| Lease { task: TaskId::node(NodeId(task)), epoch: Epoch { incarnation: 1, grant } };
    match input {
        Input::Receive { task, grant, waited, ago } => {
            let attempt = attempt(lease(task, grant));
            let delivered = (now - Span::millis(ago) + Span::millis(waited))
                .min(book.over.get(&attempt.lease).copied().unwrap_or(Moment::MAX));
            book.granted(attempt.lease);
            let waited = Span::millis(waited);
            let actions = attempts.received(attempt, waited, delivered - waited, now);
            book.write(actions);
        }
        Input::Stop { task, grant } => {
            book.granted(lease(task, grant));
            // Asked by name about something it no longer has, it may say that this is stopped.
            if !book.live.contains_key(&lease(task, grant)) {
                book.given_up.remove(&lease(task, grant));
            }
            book.write(attempts.stop(lease(task, grant), now));
        }
        Input::Beat => book.beat(attempts.heartbeat(now)),
        Input::Answer { which, stop } => {
            if !book.beats.is_empty() {
                let (sent, beat) = which.get(&book.beats).clone();
                let (stop, renewed) = if stop { (beat.has, vec![]) } else { (vec![], beat.has) };
                book.write(attempts.renewed(&Renewal { renewed, stop }, sent, now));
            }
        }
        Input::End { which, outcome } => {
            let live: Vec<Lease> = book.live.keys().copied().collect();
            if !live.is_empty() {
                let lease = *which.get(&live);
                let deadline = book.live.remove(&lease).expect("it is live");
                let outcome = match outcome {
                    0 => Outcome::Succeeded(Payload::null()),
                    1 => Outcome::failed("no"),
                    _ => Outcome::Stopped,
                };
                if now >= deadline {
                    book.end(lease, lease_end(deadline));
                } else if matches!(outcome, Outcome::Succeeded(_)) && !book.given_up.contains(&lease) {
                    book.well_ended.insert(lease);
                }
                book.write(attempts.ended(lease, outcome, now));
            }
        }
        Input::Acknowledge { which } => {
            let open: Vec<Lease> = book.unacknowledged.iter().copied().collect();
            if !open.is_empty() {
                let lease = *which.get(&open);
                book.unacknowledged.remove(&lease);
                book.end(lease, now);
                attempts.reported(lease, now);
            }
        }
        Input::Tick => {
            book.write(attempts.tick(now));
            assert!(attempts.next_wake() > now, "a tick left something undone");
            let late = book.live.iter().find(|(lease, at)| **at <= now && !book.given_up.contains(lease));
            assert_eq!(late, None, "past its deadline and not given up");
        }
        Input::Pass { millis } => book.now = now + Span::millis(millis),
        Input::Rejoin => book.write(attempts.rejoined(now)),
        Input::Drain => book.write(attempts.drain(now)),
        Input::ShutDown => book.write(attempts.shut_down(now)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_promises_hold_whatever_happens(inputs in prop::collection::vec(input(), 1..120)) {
        let mut attempts = Attempts::new("w".into(), 1, GRACE, Moment(0));
        let mut book = Book::default();
        for input in inputs {
            step(&mut attempts, &mut book, input);
        }
        // Then the runner ends everything and the engine hears every report: nothing is left over. What
        // waited behind another may start in the first round and ends in the second.
        for _ in 0..2 {
            for lease in book.live.keys().copied().collect::<Vec<_>>() {
                book.live.remove(&lease);
                book.write(attempts.ended(lease, Outcome::Stopped, book.now));
            }
        }
        for lease in std::mem::take(&mut book.unacknowledged) {
            attempts.reported(lease, book.now);
        }
        book.now = book.now + Span::seconds(60);
        book.write(attempts.tick(book.now));
        for lease in std::mem::take(&mut book.unacknowledged) {
            attempts.reported(lease, book.now);
        }
        prop_assert!(attempts.is_empty());
    }
}
