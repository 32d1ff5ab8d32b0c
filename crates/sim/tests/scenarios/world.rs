//! A core, its store, its workers and a clock that the script moves.
//!
//! After every command what was written is committed, questions are answered, and whatever the core wants to go on
//! with at once is gone on with. Then a second core is loaded from the store, to see that this can be done.

use super::evaluate::evaluate;
use super::script::Script;
use super::speech::Speech;
use super::words::Words;
use super::workers::Workers;
use std::collections::{BTreeSet, VecDeque};
use tidegate_core::Core;
use tidegate_core::ids::{Name, RunId};
use tidegate_core::model::ActionWork;
use tidegate_core::protocol::{Answer, Command, Declare, Effect, Past, Question, Refusal, Write};
use tidegate_core::time::{Moment, Span};
use tidegate_store::{Commit, Entry, MemoryStore, Reads, Store};

/// Ten o'clock on a Monday.
const BEGIN: Moment = Moment(1_772_445_600_000_000);
/// How often workers are heard of while time passes.
const BEAT: Span = Span::seconds(10);
/// Nothing goes on for longer than this without time passing.
const MOST: usize = 10_000;

pub struct World {
    pub core: Core,
    store: MemoryStore,
    term: u32,
    sequence: u64,
    pub now: Moment,
    next_beat: Moment,
    pub workers: Workers,
    pub speech: Speech,
    pub file: String,
    /// What workers can do unless they say otherwise.
    pub functions: BTreeSet<Name>,
    questions: VecDeque<Question>,
    /// So many questions are answered; the others stay open.
    pub answers: usize,
    /// The server's process is stopped: whatever is due waits until it is asked something.
    is_asleep: bool,
}

impl World {
    /// The world of a script: its document is declared, and nothing has happened.
    pub fn new(file: &str, script: &Script) -> World {
        let jobs = script.commands().filter_map(|command| {
            let mut words = Words::of(&command.words);
            (words.next()? == "job").then(|| words.next().and(words.next()))?
        });
        let mut world = World {
            core: Core::new(0),
            store: MemoryStore::new(),
            term: 0,
            sequence: 0,
            now: BEGIN,
            next_beat: BEGIN + BEAT,
            workers: Workers::default(),
            speech: Speech::default(),
            file: file.to_owned(),
            functions: jobs.map(Name::from).collect(),
            questions: VecDeque::new(),
            answers: usize::MAX,
            is_asleep: false,
        };
        world.load();
        world.declare(&script.document).unwrap_or_else(|error| panic!("{error}"));
        world.speech.lines.clear();
        world
    }

    pub fn declare(&mut self, text: &str) -> Result<Answer, String> {
        let document = tidegate_flow::parse(&self.file, text).map_err(|error| error.render(false))?;
        let functions = document.actions.iter().filter(|action| matches!(action.work, ActionWork::Function));
        self.functions.extend(functions.map(|action| action.policy.action.clone()));
        let tidegate_flow::Document { flows, actions, limits, .. } = document;
        Ok(self.apply(Command::Declare(Declare { flows, actions, limits, files: Vec::new() })))
    }

    /// The core is lost, and another goes on from what was written.
    pub fn load(&mut self) {
        self.store.set_clock(self.now);
        self.store.resign(self.term).expect("memory answers");
        let term = self.store.lead(&"s".into(), None, Span::hours(10_000)).expect("memory answers");
        self.term = term.expect("nobody else leads").term;
        let loaded = self.store.load().expect("memory answers");
        self.sequence = loaded.sequence;
        self.core = Core::load(loaded.snapshot, self.term, self.now);
        self.questions.clear();
        self.is_asleep = false;
        self.take_output();
    }

    pub fn apply(&mut self, command: Command) -> Answer {
        self.is_asleep = false;
        let answer = self.core.apply(command, self.now);
        self.take_output();
        answer
    }

    fn take_output(&mut self) {
        let output = self.core.take_output();
        self.commit(&output.writes);
        for write in &output.writes {
            self.speech.write(write, &self.core);
        }
        for effect in output.effects {
            match effect {
                Effect::Ask(question) => self.questions.push_back(question),
                Effect::Stop { lease, .. } => self.speech.stop(lease.task),
                Effect::Deliver { worker, lease, order, .. } => {
                    let stored = self.store.payload(lease.task).expect("memory answers");
                    let order = order.or(stored.clone());
                    assert!(order.is_some() && order == stored, "{lease:?} is delivered with its order");
                    let granted =
                        |write: &Write| matches!(write, Write::Granted { task, .. } if *task == lease.task);
                    if !output.writes.iter().any(granted) {
                        let name = self.speech.names.name(lease.task);
                        self.speech.say(format!("delivered {name} to {worker} again"));
                    }
                    self.workers.deliver(&worker, lease);
                }
            }
        }
    }

    fn commit(&mut self, writes: &[Write]) {
        self.sequence += 1;
        let (sequence, term, next) = (self.sequence, self.term, self.core.next());
        let batch = u128::from(sequence);
        let (now, writes) = (self.core.now(), writes.to_vec());
        let entry = Entry { sequence, term, batch, now, next, letters: Vec::new(), digest: None, writes };
        assert_eq!(self.store.commit(&entry).expect("memory answers"), Commit::Done);
    }

    /// What the store has of something, as whoever leads looks it up.
    pub fn recall(&mut self, of: RunId) -> Option<Past> {
        tidegate_engine::recall(&mut self.store, of).expect("memory answers")
    }

    /// Goes on until nothing is left to do at this moment.
    pub fn settle(&mut self) {
        for _ in 0..MOST {
            if self.answers > 0
                && let Some(question) = self.questions.pop_front()
            {
                self.answers -= usize::from(self.answers < usize::MAX);
                if let Some(asked) = self.core.asked(question) {
                    let evaluation = evaluate(&asked, &mut self.store, self.now);
                    self.apply(Command::Evaluated { question, evaluation });
                }
            } else if self.core.next_wake().is_some_and(|at| at <= self.now) {
                self.speech.say("(goes on)".to_owned());
                self.apply(Command::Wake);
            } else {
                return;
            }
        }
        panic!("it goes on for ever: {}", self.core.describe_open(self.now));
    }

    /// Time passes. The core is woken exactly when it wants to be; workers are heard of now and then.
    pub fn advance(&mut self, span: Span) {
        let end = self.now + span;
        loop {
            let wake = self.core.next_wake().unwrap_or(Moment::MAX);
            let next = wake.min(self.next_beat).max(self.now);
            if next > end {
                break;
            }
            self.now = next;
            self.speech.stamp = format!("[{}] ", next.since(BEGIN));
            if next == self.next_beat {
                self.next_beat = next + BEAT;
                for heartbeat in self.workers.heartbeats(&self.core) {
                    self.apply(Command::Heartbeat(heartbeat));
                }
            }
            if wake <= next {
                self.apply(Command::Wake);
            }
            self.settle();
            self.speech.waiting(&self.core, self.now);
        }
        self.speech.stamp.clear();
        self.now = end;
    }

    /// Time passes and nobody is woken or heard of: the process was stopped.
    pub fn sleep(&mut self, span: Span) {
        self.is_asleep = true;
        self.now = self.now + span;
        while self.next_beat <= self.now {
            self.next_beat = self.next_beat + BEAT;
        }
    }

    /// Carries a command out; says everything that follows from it.
    pub fn carry_out(&mut self, words: &str, body: &[String]) -> Result<Vec<String>, String> {
        self.command(Words::of(words), body)?;
        if !self.is_asleep {
            self.settle();
        }
        self.speech.waiting(&self.core, self.now);
        self.check_that_it_can_be_loaded();
        Ok(std::mem::take(&mut self.speech.lines))
    }

    fn check_that_it_can_be_loaded(&mut self) {
        let loaded = self.store.load().expect("memory answers");
        let mut core = Core::load(loaded.snapshot, self.term + 1, self.now);
        core.apply(Command::Wake, self.now);
    }

    /// A refusal in the words of the script.
    pub fn refusal(&self, refusal: &Refusal) -> String {
        match refusal {
            Refusal::UnknownTask(task) => format!("there is no open task {}", self.speech.names.name(*task)),
            other => self.speech.names.in_text(&other.to_string()),
        }
    }
}
