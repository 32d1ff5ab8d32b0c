//! A real core, driven by random commands, so that stores are tried with the writes they will meet.
//!
//! It answers every kind of question, keeps its workers alive or lets them fall silent, and is not interested in
//! what is right: that is the simulator's business.

pub mod flows;
pub mod laws;
mod past;

use past::Rows;
use proptest::prelude::*;
use std::collections::BTreeMap;
use tidegate_core::Core;
use tidegate_core::admission::{LimitKey, Skills, SlotCounts};
use tidegate_core::ids::{Name, NodeId, RunId, TaskId};
use tidegate_core::model::{Flow, Work};
use tidegate_core::protocol::{
    Command, Effect, Evaluation, Failure, Finish, Heartbeat, Join, Lease, Leave, LimitValue, Outcome,
    Pausable, Payload, Question, Rendered, Retry, SetLimit, Submission, Submit, TokenRow, Write,
};
use tidegate_core::time::{Moment, Span};

/// One random move: what to do, to which of those there are, and how.
#[derive(Clone, Copy, Debug)]
pub struct Move {
    what: u8,
    which: usize,
    how: u32,
}

pub fn moves(most: usize) -> impl Strategy<Value = Vec<Move>> {
    let one = (0..35u8, any::<u16>(), any::<u32>());
    let one = one.prop_map(|(what, which, how)| Move { what, which: which.into(), how });
    prop::collection::vec(one, 1..most)
}

pub struct Drive {
    core: Core,
    now: Moment,
    ids: u128,
    questions: Vec<Question>,
    attempts: Vec<(Name, Lease)>,
    workers: BTreeMap<Name, u64>,
    flows: BTreeMap<NodeId, Name>,
    known: BTreeMap<Name, Flow>,
    rows: Rows,
    /// Everything that ever was.
    pub tasks: Vec<TaskId>,
}

impl Drive {
    pub fn new() -> Self {
        let mut drive = Drive {
            core: Core::new(1),
            now: Moment(1_700_000_000_000_000),
            ids: 0,
            questions: Vec::new(),
            attempts: Vec::new(),
            workers: BTreeMap::new(),
            flows: BTreeMap::new(),
            known: flows::flows().into_iter().map(|flow| (flow.name.clone(), flow)).collect(),
            rows: Rows::default(),
            tasks: Vec::new(),
        };
        drive.apply(Command::Declare(flows::declare()));
        drive.join(0, 1);
        drive
    }

    pub fn now(&self) -> Moment {
        self.core.now()
    }

    /// The last id that was given to a submission.
    pub fn ids(&self) -> u128 {
        self.ids
    }

    pub fn next(&self) -> u64 {
        self.core.next()
    }

    /// What the moves since the last call want written.
    pub fn take_writes(&mut self) -> Vec<Write> {
        let output = self.core.take_output();
        for effect in output.effects {
            match effect {
                Effect::Ask(question) => self.questions.push(question),
                Effect::Deliver { worker, lease, .. } => self.attempts.push((worker, lease)),
                Effect::Stop { .. } => {}
            }
        }
        for write in &output.writes {
            self.note(write);
        }
        output.writes
    }

    fn note(&mut self, write: &Write) {
        self.rows.note(write);
        match write {
            Write::NodeAdded(row) => {
                self.tasks.push(TaskId::node(row.node));
                if let Some(run) = row.body.run() {
                    self.flows.insert(row.node, run.flow.clone());
                }
            }
            Write::ItemsAdded { step, from, items, .. } => {
                let indexes = *from..from + items.len() as u32;
                self.tasks.extend(indexes.map(|index| TaskId::item(*step, index)));
            }
            _ => {}
        }
    }

    fn apply(&mut self, command: Command) {
        self.core.apply(command, self.now);
    }

    pub fn make(&mut self, one: Move) {
        let Move { what, which, how } = one;
        match what {
            0..=3 => self.submit(job(how), how),
            4..=6 => self.submit(self.run(which), how),
            7..=13 => self.answer(which, how),
            14..=19 => self.finish(which, how),
            20..=22 => self.wait(how),
            23 => self.heartbeat(which),
            24 => self.join(how, how % 3),
            25 => self.leave(which, how),
            26 => self.cancel(which),
            27 => self.rank(which, how),
            28 => self.pause(which, how),
            29 => self.set_limit(which, how),
            30 => self.apply(Command::Declare(flows::declare_otherwise(how))),
            31..=32 => self.retry(which, how),
            33 => self.token(how),
            _ => self.apply(Command::Wake),
        }
    }

    /// Made, made anew or revoked, by somebody.
    fn token(&mut self, how: u32) {
        let id: Name = format!("t{}", how % 3).into();
        let until = how.is_multiple_of(2).then(|| self.now + Span::days(1));
        let (name, scopes) = ("ci \u{1f512}".into(), vec!["run".into()]);
        let token = || TokenRow {
            id: id.clone(),
            name,
            hash: "00ff".into(),
            scopes,
            by: "ann".into(),
            at: self.now,
            until,
        };
        let command = match how % 7 {
            0..=3 => Command::SetToken(token()),
            _ => Command::RevokeToken { id },
        };
        self.apply(Command::By { who: "ann".into(), command: Box::new(command) });
    }

    fn run(&self, which: usize) -> Submission {
        let flow =
            pick(&self.known.keys().cloned().collect::<Vec<_>>(), which).unwrap_or_else(|| "plain".into());
        Submission::Run { flow, key: None, inputs: payload(which as u32) }
    }

    fn submit(&mut self, what: Submission, how: u32) {
        self.ids += 1;
        let later = how.is_multiple_of(5).then(|| self.now + Span::seconds(u64::from(how % 50)));
        let submit = Submit {
            id: RunId(self.ids),
            what,
            tags: vec![("team".into(), Name::new(["a", "b"][how as usize % 2]))],
            priority: (how % 7) as i8 - 3,
            due: later,
            idempotency: None,
        };
        let submit = match how.is_multiple_of(9) {
            true => submit.under(format!("once {}", how % 4)),
            false => submit,
        };
        self.apply(Command::Submit(submit));
    }

    fn retry(&mut self, which: usize, how: u32) {
        let Some(of) = pick(&self.rows.ids(), which) else { return };
        self.ids += 1;
        let queue = how.is_multiple_of(6).then(|| "other".into());
        let (id, past) = (RunId(self.ids), self.rows.past(of).map(Box::new));
        self.apply(Command::Retry(Retry { id, of, from_start: how.is_multiple_of(5), queue, past }));
    }

    fn answer(&mut self, which: usize, how: u32) {
        if self.questions.is_empty() {
            return;
        }
        let question = self.questions.swap_remove(which % self.questions.len());
        let evaluation = match question {
            _ if how.is_multiple_of(13) => Evaluation::Failed { error: "no such name".to_owned() },
            Question::Step { .. } if how.is_multiple_of(11) => Evaluation::Skipped,
            Question::Step { run, step } => self.order(run, step, how),
            Question::Items { from, to, .. } => {
                Evaluation::Items((from..to).map(|n| Ok(rendered(n + how))).collect())
            }
            Question::Outputs { .. } => Evaluation::Outputs(payload(how)),
        };
        self.apply(Command::Evaluated { question, evaluation });
    }

    fn order(&self, run: NodeId, step: u32, how: u32) -> Evaluation {
        let step = self.flows.get(&run).and_then(|flow| self.known.get(flow)?.steps.get(step as usize));
        let step = step.expect("only known flows are run");
        match &step.work {
            _ if step.each.is_some() => Evaluation::List { items: payload(how), count: how % 8 },
            Work::Order(_) | Work::Action { .. } => Evaluation::Order(rendered(how)),
            Work::Flow { .. } => Evaluation::SubFlow { inputs: payload(how) },
            Work::Wait(_) => Evaluation::Until(self.now + Span::seconds(u64::from(how % 40))),
        }
    }

    fn finish(&mut self, which: usize, how: u32) {
        if self.attempts.is_empty() {
            return;
        }
        let (worker, lease) = self.attempts.swap_remove(which % self.attempts.len());
        let outcome = match how % 8 {
            0 | 1 => Outcome::Failed(Failure { output: Some(payload(how)), ..Failure::new("exit 1") }),
            2 => Outcome::Stopped,
            3 => Outcome::HandedBack,
            _ => Outcome::Succeeded(payload(how)),
        };
        let offer = how.is_multiple_of(10).then_some(SlotCounts { process: how % 4, io: how % 5 });
        self.apply(Command::Finish(Finish { worker, lease, outcome, offer }));
    }

    fn wait(&mut self, how: u32) {
        self.now = self.now + Span::millis(u64::from(how % 20_000));
        self.apply(Command::Wake);
    }

    fn heartbeat(&mut self, which: usize) {
        let Some((worker, incarnation)) = self.worker(which) else { return };
        let has = self.attempts.iter().filter(|(of, _)| *of == worker).map(|(_, lease)| *lease).collect();
        self.apply(Command::Heartbeat(Heartbeat { worker, incarnation, has }));
    }

    fn worker(&self, which: usize) -> Option<(Name, u64)> {
        pick(
            &self.workers.iter().map(|(name, &incarnation)| (name.clone(), incarnation)).collect::<Vec<_>>(),
            which,
        )
    }

    fn join(&mut self, how: u32, incarnation: u32) {
        let worker = Name::new(format!("w{}", how % 3));
        let incarnation = u64::from(incarnation);
        self.workers.insert(worker.clone(), incarnation);
        let skills = Skills { functions: flows::actions(), ..Skills::plain() };
        let slots = SlotCounts { process: 3, io: 4 };
        self.apply(Command::Join(Join { worker, incarnation, skills, slots }));
    }

    fn leave(&mut self, which: usize, how: u32) {
        let Some((worker, incarnation)) = self.worker(which) else { return };
        if how.is_multiple_of(2) {
            self.workers.remove(&worker);
            self.apply(Command::Leave(Leave { worker, incarnation }));
        } else {
            let slots = SlotCounts { process: how % 3, io: how % 4 };
            self.apply(Command::Offer { worker, incarnation, slots });
        }
    }

    fn cancel(&mut self, which: usize) {
        if let Some(task) = pick(&self.tasks, which) {
            self.apply(Command::Cancel(task));
        }
    }

    fn rank(&mut self, which: usize, how: u32) {
        if let Some(task) = pick(&self.tasks, which) {
            self.apply(Command::SetPriority { node: task.node, priority: (how % 9) as i8 });
        }
    }

    fn pause(&mut self, which: usize, how: u32) {
        let Some(task) = pick(&self.tasks, which) else { return };
        let what = match how % 4 {
            0 => Pausable::Action("work.fast".into()),
            1 => Pausable::Limit(LimitKey::Pool("gpu".into())),
            _ => Pausable::Node(task.node),
        };
        let command = if how.is_multiple_of(3) { Command::Pause(what) } else { Command::Resume(what) };
        self.apply(command);
    }

    fn set_limit(&mut self, which: usize, how: u32) {
        let key = match which % 3 {
            0 => LimitKey::Runs,
            1 => LimitKey::Pool("gpu".into()),
            _ => LimitKey::Action("work.fast".into()),
        };
        let value = (!how.is_multiple_of(3)).then_some(LimitValue::Units(1 + how % 6));
        let until = how.is_multiple_of(4).then(|| self.now + Span::seconds(20));
        self.apply(Command::SetLimit(SetLimit { key, value, by: "ann".into(), until }));
    }
}

fn job(how: u32) -> Submission {
    let action = pick(&flows::actions(), how as usize).unwrap_or_else(|| "work.fast".into());
    Submission::Job { action, key: key(how), order: payload(how) }
}

fn key(how: u32) -> Option<Name> {
    how.is_multiple_of(2).then(|| Name::new(format!("key {}", how % 3)))
}

fn rendered(how: u32) -> Rendered {
    Rendered { order: payload(how), key: key(how / 4) }
}

/// Around the size up to which payloads are loaded, on both sides of it.
fn payload(how: u32) -> Payload {
    Payload::new(format!("\"{}\"", "é".repeat(how as usize % 140)))
}

fn pick<T: Clone>(all: &[T], which: usize) -> Option<T> {
    (!all.is_empty()).then(|| all[which % all.len()].clone())
}
