//! A core that is filled with waiting tasks and then driven: every cycle submits a task, grants one and finishes
//! one, and every batch of commands becomes one encoded entry.

use super::clock::computed;
use super::situation::{Part, Situation};
use crate::random::Random;
use std::collections::VecDeque;
use std::hint::black_box;
use tidegate_core::Core;
use tidegate_core::ids::Name;
use tidegate_core::protocol::{Answer, Command, Effect, Finish, Lease, Outcome, Payload};
use tidegate_core::time::{Moment, Span};
use tidegate_store::{Entry, codec};

/// Cycles of one batch. A cycle is two commands, and three cycles make a round of the situation with two limits.
pub const CYCLES_A_BATCH: usize = 252;
/// Engine time between two commands.
const BETWEEN: Span = Span::micros(1);
/// Orders and outputs of an ordinary size. By its order a station knows which part a task is of.
const ORDERS: [&str; 3] = [
    r#"{"call":{"function":"billing.charge-card","input":{"customer":"c-184467","cents":1999}}}"#,
    r#"{"call":{"function":"billing.left","input":{"customer":"c-184467","cents":1999}}}"#,
    r#"{"call":{"function":"billing.right","input":{"customer":"c-184467","cents":1999}}}"#,
];
const OUTPUT: &str = r#"{"receipt":"r-184467"}"#;

pub struct Station {
    situation: Situation,
    core: Core,
    random: Random,
    orders: [Payload; 3],
    output: Payload,
    now: Moment,
    /// Tasks submitted so far, by part.
    submitted: [u64; 3],
    sequence: u64,
    /// What runs, oldest first, by part.
    running: [VecDeque<(Name, Lease)>; 3],
    granted: u64,
    answers: Vec<Answer>,
}

impl Station {
    /// A core in that situation, in which everything is full and nobody waits yet.
    pub fn full(situation: Situation) -> Station {
        let mut station = Station {
            situation,
            core: Core::new(1),
            random: Random::new(1),
            orders: ORDERS.map(Payload::new),
            output: Payload::new(OUTPUT),
            now: Moment(1_800_000_000_000_000),
            submitted: [0; 3],
            sequence: 0,
            running: Default::default(),
            granted: 0,
            answers: Vec::with_capacity(2 * CYCLES_A_BATCH),
        };
        station.play(situation.opening());
        let holders: Vec<Command> = situation.holders().iter().map(|&part| station.submit(part)).collect();
        let expected = holders.len();
        station.play(holders);
        assert_eq!(station.running.iter().map(VecDeque::len).sum::<usize>(), expected, "all holders start");
        station
    }

    /// Lets so many tasks wait; notes how long each submission took.
    pub fn fill(&mut self, waiting: usize, times: &mut Vec<u64>) {
        let granted = self.granted;
        let mut left = waiting;
        while left > 0 {
            let batch = left.min(2 * CYCLES_A_BATCH);
            let commands: Vec<Command> = (0..batch).map(|_| self.submit(Part::Main)).collect();
            self.play_timed(commands, times);
            left -= batch;
        }
        assert_eq!(self.granted, granted, "those who are to wait do");
    }

    /// Nanoseconds a cycle, over so many batches.
    pub fn pace(&mut self, batches: usize) -> f64 {
        let before = self.granted;
        let mut time = 0;
        for _ in 0..batches {
            let commands = self.cycles();
            time += self.play(commands);
        }
        let cycles = (batches * CYCLES_A_BATCH) as u64;
        assert_eq!(self.granted - before, cycles, "one grant a cycle");
        time as f64 / cycles as f64
    }

    /// Notes how long each command takes, over so many batches.
    pub fn time_each(&mut self, batches: usize, times: &mut Vec<u64>) {
        for _ in 0..batches {
            let commands = self.cycles();
            self.play_timed(commands, times);
        }
    }

    // ---- commands

    fn submit(&mut self, part: Part) -> Command {
        let number = self.submitted[part as usize];
        self.submitted[part as usize] += 1;
        self.situation.submit(number, part, &self.orders[part as usize], &mut self.random)
    }

    fn finish(&mut self, part: Part) -> Command {
        let (worker, lease) =
            self.running[part as usize].pop_front().expect("more run than one batch finishes");
        let outcome = Outcome::Succeeded(self.output.clone());
        Command::Finish(Finish { worker: worker.as_str().into(), lease, outcome, offer: None })
    }

    /// The commands of one batch.
    fn cycles(&mut self) -> Vec<Command> {
        let mut commands = Vec::with_capacity(2 * CYCLES_A_BATCH);
        if self.situation == Situation::TwoLimits {
            for _ in 0..CYCLES_A_BATCH / 3 {
                // Those who need one pool only go first and take both of what is given back; then each gives
                // back one, in turn, for somebody who needs both.
                commands.push(self.submit(Part::Left));
                commands.push(self.submit(Part::Right));
                commands.push(self.finish(Part::Main));
                commands.push(self.submit(Part::Main));
                commands.push(self.finish(Part::Left));
                commands.push(self.finish(Part::Right));
            }
        } else {
            for _ in 0..CYCLES_A_BATCH {
                commands.push(self.submit(Part::Main));
                commands.push(self.finish(Part::Main));
            }
        }
        commands
    }

    // ---- playing them

    /// From commands to an encoded entry: how many nanoseconds that took.
    fn play(&mut self, commands: Vec<Command>) -> u64 {
        let begin = computed();
        for command in commands {
            self.now = self.now + BETWEEN;
            let answer = self.core.apply(command, self.now);
            self.answers.push(answer);
        }
        let effects = self.commit();
        let time = computed() - begin;
        self.follow(effects);
        time
    }

    fn play_timed(&mut self, commands: Vec<Command>, times: &mut Vec<u64>) {
        for command in commands {
            self.now = self.now + BETWEEN;
            let begin = computed();
            let answer = self.core.apply(command, self.now);
            times.push(computed() - begin);
            self.answers.push(answer);
        }
        let effects = self.commit();
        self.follow(effects);
    }

    fn commit(&mut self) -> Vec<Effect> {
        let output = self.core.take_output();
        self.sequence += 1;
        let entry = Entry {
            sequence: self.sequence,
            term: 1,
            batch: u128::from(self.sequence),
            now: self.now,
            next: self.core.next(),
            letters: Vec::new(),
            digest: None,
            writes: output.writes,
        };
        black_box(codec::encode(&entry).expect("an entry can be encoded"));
        output.effects
    }

    /// What a shell does with answers and effects: not part of what is measured.
    fn follow(&mut self, effects: Vec<Effect>) {
        for answer in self.answers.drain(..) {
            assert!(!matches!(answer, Answer::Refused(_)), "{answer:?}");
        }
        for effect in effects {
            let Effect::Deliver { worker, lease, order: Some(order), .. } = effect else { continue };
            let part =
                self.orders.iter().position(|known| *known == order).expect("an order of this station");
            self.granted += 1;
            self.running[part].push_back((worker, lease));
        }
    }
}
