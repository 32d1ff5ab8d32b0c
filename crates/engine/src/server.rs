//! A server: follows until it may lead, loads, writes while it leads, and starts over when it may not any more.
//!
//! The memory of a leader is a cache of the store. When it can no longer be trusted (deposed, a foreign entry, a
//! damaged handle) it is thrown away, and everybody who waits for an answer is told to ask again.

use crate::clock::EngineClock;
use crate::writer::{GivenUp, Released, Ticket, Writer};
use std::sync::Arc;
use tidegate_core::Core;
use tidegate_core::ids::Name;
use tidegate_core::planted::{Bug, Planted};
use tidegate_core::protocol::{Answer, Command, Effect, Lease};
use tidegate_core::time::{Moment, Span};
use tidegate_store::{Commit, Entry, Loaded, StoreError, Term};

/// How long a lead lasts without being extended, and how often it is.
pub const LEAD: Span = Span::seconds(4);
const EXTEND_EVERY: Span = Span::seconds(1);
/// How often a follower tries to lead.
const TRY_EVERY: Span = Span::millis(500);
/// How long to wait before an unknown commit is asked about again.
const ASK_AGAIN: Span = Span::millis(20);
/// How long to wait before a store that cannot be used is opened anew: at first, and at most.
const REOPEN_FIRST: Span = Span::millis(100);
const REOPEN_LAST: Span = Span::seconds(2);
/// After a leader that did not resign, every grant waits for its commit for so long: a task that ends its process each
/// time must be seen to have started.
const GATED: Span = Span::seconds(60);

/// What happened: a command came in, or the store answered.
#[derive(Debug)]
pub enum Input {
    Command {
        ticket: Ticket,
        command: Command,
    },
    /// A command that was found in a letter, which leaves the mailbox with what becomes of it.
    Letter {
        ticket: Ticket,
        number: u64,
        command: Command,
    },
    Led(Result<Option<Term>, StoreError>),
    Loaded(Result<Loaded, StoreError>),
    Committed(Result<Commit, StoreError>),
    /// Everything that was to be aborted has ended.
    Aborted,
    /// Nothing, but time has passed.
    Tick,
    /// Take nothing more in, make durable what was taken in, then give up the lead.
    Resign,
}

/// What is to be done. At most one of the first four is under way at a time for leading and one for committing.
#[derive(Debug)]
pub enum Output {
    /// Ask the store for the lead, or to extend this one.
    Lead {
        mine: Option<u32>,
        lease: Span,
    },
    Load,
    Commit(Arc<Entry>),
    Resign {
        term: u32,
    },
    /// `None`: nobody knows what became of it; ask again, at this server or another.
    Answer {
        ticket: Ticket,
        answer: Option<Answer>,
    },
    Effect(Effect),
    /// This entry is durable now.
    Written(Arc<Entry>),
    /// The handle of the store is damaged: open it anew, before what is asked of it next.
    Reopen,
    /// These attempts were handed over, and nobody knows whether that is durable. They must have ended before the next
    /// core grants anything: say [`Input::Aborted`] then.
    Abort(Vec<Lease>),
}

#[derive(Debug)]
enum Role {
    Follower,
    Loading(Term),
    Leader(Box<Writer>),
}

/// Makes the core of a new leader. The simulator gives one with other rules, or a planted bug.
pub type MakeCore = Box<dyn Fn(u32) -> Core + Send>;

/// The store cannot be used.
#[derive(Debug)]
struct Outage {
    why: StoreError,
    /// How long to wait before the next attempt to use it.
    pause: Span,
    /// The handle is to be opened anew before that.
    reopen: bool,
}

pub struct Server {
    name: Name,
    clock: EngineClock,
    role: Role,
    make_core: MakeCore,
    /// A question about the lead is with the store.
    asking: bool,
    /// Local time at which to ask about the lead next.
    ask_at: Moment,
    /// Local time at which to repeat an unknown commit.
    repeat_at: Option<Moment>,
    outage: Option<Outage>,
    resigned: bool,
    /// Attempts of a core that was given up have still to end.
    aborting: bool,
    /// The newest term that was taken up here.
    newest: u32,
    keeps_digests: bool,
    planted: Planted,
}

impl Server {
    pub fn new(name: Name) -> Self {
        Server::with_core(name, Box::new(Core::new))
    }

    pub fn with_core(name: Name, make_core: MakeCore) -> Self {
        Server {
            name,
            clock: EngineClock::default(),
            role: Role::Follower,
            make_core,
            asking: false,
            ask_at: Moment(i64::MIN),
            repeat_at: None,
            outage: None,
            resigned: false,
            aborting: false,
            newest: 0,
            keeps_digests: false,
            planted: Planted::default(),
        }
    }

    /// Every entry says what the durable state amounts to after it, and a core that is loaded is compared with that. For
    /// tests: it panics where they differ.
    pub fn keeping_digests(self) -> Self {
        Server { keeps_digests: true, ..self }
    }

    #[cfg(feature = "planted-bugs")]
    pub fn plant(&mut self, bug: Bug) {
        self.planted = Planted::bug(bug);
    }

    pub fn name(&self) -> &Name {
        &self.name
    }

    pub fn leads(&self) -> bool {
        matches!(self.role, Role::Leader(_))
    }

    /// How many commands wait to be applied.
    pub fn waiting(&self) -> usize {
        match &self.role {
            Role::Leader(writer) => writer.waiting(),
            _ => 0,
        }
    }

    pub fn core(&self) -> Option<&Core> {
        match &self.role {
            Role::Leader(writer) => Some(writer.core()),
            _ => None,
        }
    }

    /// Why the store cannot be used, from the first failure until it has proved that it can.
    pub fn outage(&self) -> Option<&StoreError> {
        self.outage.as_ref().map(|outage| &outage.why)
    }

    /// Engine time at a local time.
    pub fn engine_time(&self, local: Moment) -> Moment {
        self.clock.at(local)
    }

    /// Takes in what happened, and says what is to be done. Commands are only taken in; the next tick applies
    /// them, so that those that come together are committed together. In the same way what was applied during a commit
    /// waits for the next tick.
    pub fn handle(&mut self, input: Input, local: Moment, out: &mut Vec<Output>) {
        match input {
            Input::Command { ticket, command } => return self.take_in(ticket, None, command, out),
            Input::Letter { ticket, number, command } => {
                return self.take_in(ticket, Some(number), command, out);
            }
            Input::Led(result) => self.led(result, local, out),
            Input::Loaded(result) => self.loaded(result, local, out),
            Input::Committed(result) => return self.committed(result, local, out),
            Input::Aborted => self.aborting = false,
            Input::Tick => {}
            Input::Resign => self.resigned = true,
        }
        self.go_on(local, out);
    }

    fn take_in(&mut self, ticket: Ticket, letter: Option<u64>, command: Command, out: &mut Vec<Output>) {
        let taken = match &mut self.role {
            // Who is about to go still takes in what frees something.
            Role::Leader(writer) if !self.resigned || is_last_word(&command) => {
                writer.push(ticket, letter, command)
            }
            _ => false,
        };
        if !taken {
            out.push(Output::Answer { ticket, answer: None });
        }
    }

    fn led(&mut self, result: Result<Option<Term>, StoreError>, local: Moment, out: &mut Vec<Output>) {
        self.asking = false;
        let term = match result {
            Ok(term) => term,
            Err(error @ StoreError::Unknown(_)) => return self.unanswered(error),
            Err(error) => return self.start_over(error, local, out),
        };
        match (term, &self.role) {
            (Some(term), Role::Leader(writer)) if writer.term() == term.term => {
                self.clock.set(term.clock, local);
                self.ask_at = local + EXTEND_EVERY;
                // Nobody wants anything written, so this is all the proof there will be.
                if writer.in_flight().is_none() {
                    self.outage = None;
                }
            }
            (Some(term), Role::Loading(mine)) if mine.term == term.term => {}
            (Some(term), _) if self.resigned => out.push(Output::Resign { term: term.term }),
            (Some(term), _) => self.take_up(term, local, out),
            // Who follows wants nothing more of the store than to be told so.
            (None, _) => {
                self.step_down(out);
                self.outage = None;
            }
        }
    }

    /// A lead begins. One that was given up is not taken up again, although the store may have extended it meanwhile: the
    /// epochs of its grants would be given twice.
    fn take_up(&mut self, term: Term, local: Moment, out: &mut Vec<Output>) {
        self.step_down(out);
        if term.term <= self.newest || self.must_wait_for_aborted() {
            self.ask_at = local;
            return;
        }
        self.newest = term.term;
        self.clock.begin(term.clock, local);
        self.ask_at = local + EXTEND_EVERY;
        self.role = Role::Loading(term);
        out.push(Output::Load);
    }

    fn loaded(&mut self, result: Result<Loaded, StoreError>, local: Moment, out: &mut Vec<Output>) {
        let Role::Loading(term) = &self.role else { return };
        match result {
            Ok(loaded) => {
                let writer = self.writer(term, loaded, self.clock.at(local));
                // Where the clock of whoever led before was ahead, time goes on from there: it never goes back.
                self.clock.set(writer.core().now(), local);
                self.role = Role::Leader(Box::new(writer));
            }
            Err(error @ StoreError::Unknown(_)) => {
                self.unanswered(error);
                out.push(Output::Load);
            }
            Err(error) => self.start_over(error, local, out),
        }
    }

    fn writer(&self, term: &Term, loaded: Loaded, now: Moment) -> Writer {
        let Loaded { snapshot, sequence, digest } = loaded;
        let core = (self.make_core)(term.term).loaded(snapshot, now);
        if let (true, Some(digest)) = (self.keeps_digests, digest) {
            assert_eq!(
                core.durable_digest(),
                digest,
                "the core loaded at entry {sequence} is not the one that wrote it"
            );
        }
        Writer::new(core, term.term, sequence)
            .running_ahead(self.ahead_from(term, now))
            .keeping_digests(self.keeps_digests)
    }

    fn ahead_from(&self, term: &Term, now: Moment) -> Option<Moment> {
        let alone = term.alone || self.planted.has(Bug::AheadWhereShared);
        let clean = term.clean || self.planted.has(Bug::AheadAfterCrash);
        match (alone, clean) {
            (false, _) => None,
            (true, true) => Some(now),
            (true, false) => Some(now + GATED),
        }
    }

    fn committed(&mut self, result: Result<Commit, StoreError>, local: Moment, out: &mut Vec<Output>) {
        let Role::Leader(writer) = &mut self.role else { return };
        match result {
            Ok(Commit::Done) => {
                self.outage = None;
                release(writer.committed(), out);
            }
            Ok(Commit::Foreign | Commit::Deposed) => self.step_down(out),
            // It keeps callers waiting, and is no outage.
            Ok(Commit::Later) => self.repeat_at = Some(local),
            // Ask again, do not guess.
            Err(error @ StoreError::Unknown(_)) => {
                self.repeat_at = Some(local + ASK_AGAIN);
                self.unanswered(error);
            }
            Err(error) => self.start_over(error, local, out),
        }
    }

    /// The handle is as good as before, and is asked again.
    fn unanswered(&mut self, why: StoreError) {
        self.outage.get_or_insert(Outage { why, pause: REOPEN_FIRST, reopen: false });
    }

    /// The handle is gone, and with it what memory believed of the store. Each time it lasts longer until the next
    /// attempt, so that a store that stays unusable costs little.
    fn start_over(&mut self, why: StoreError, local: Moment, out: &mut Vec<Output>) {
        self.step_down(out);
        let pause = match &self.outage {
            Some(outage) => (outage.pause + outage.pause).min(REOPEN_LAST),
            None => REOPEN_FIRST,
        };
        self.outage = Some(Outage { why, pause, reopen: true });
        self.ask_at = local + pause;
    }

    /// Gives up what is in memory. A follower asks for the lead again in its own time.
    fn step_down(&mut self, out: &mut Vec<Output>) {
        self.repeat_at = None;
        if let Role::Leader(writer) = std::mem::replace(&mut self.role, Role::Follower) {
            let GivenUp { unanswered, ahead } = writer.give_up();
            if !ahead.is_empty() {
                self.aborting = true;
                out.push(Output::Abort(ahead));
            }
            out.extend(unanswered.into_iter().map(|ticket| Output::Answer { ticket, answer: None }));
        }
    }

    /// Gives up the lead once everything that was taken in is durable.
    fn resign_when_done(&mut self, out: &mut Vec<Output>) {
        let term = match &self.role {
            Role::Leader(writer) if writer.is_done() => writer.term(),
            Role::Loading(term) => term.term,
            Role::Leader(_) | Role::Follower => return,
        };
        out.push(Output::Resign { term });
        self.step_down(out);
    }

    /// Has given up the lead, or never had it, and will not ask for it again.
    pub fn has_resigned(&self) -> bool {
        self.resigned && matches!(self.role, Role::Follower)
    }

    /// Does what the time says, and whatever the writer has ready.
    fn go_on(&mut self, local: Moment, out: &mut Vec<Output>) {
        if local >= self.ask_at && self.may_ask() {
            self.asking = true;
            let (mine, next) = match &self.role {
                Role::Leader(writer) => (Some(writer.term()), EXTEND_EVERY),
                Role::Loading(term) => (Some(term.term), EXTEND_EVERY),
                Role::Follower => (None, TRY_EVERY),
            };
            self.ask_at = local + next;
            if self.outage.as_mut().is_some_and(|outage| std::mem::take(&mut outage.reopen)) {
                out.push(Output::Reopen);
            }
            out.push(Output::Lead { mine, lease: LEAD });
        }
        self.write_on(local, out);
        if self.resigned {
            self.resign_when_done(out);
        }
    }

    fn may_ask(&self) -> bool {
        let leads = !matches!(self.role, Role::Follower);
        !self.asking && (leads || !self.resigned && !self.must_wait_for_aborted())
    }

    /// While attempts of an earlier core have still to end, there must be no new one.
    fn must_wait_for_aborted(&self) -> bool {
        self.aborting && !self.planted.has(Bug::AbortedNotJoined)
    }

    fn write_on(&mut self, local: Moment, out: &mut Vec<Output>) {
        let now = self.clock.at(local);
        let Role::Leader(writer) = &mut self.role else { return };
        if self.repeat_at.is_some_and(|at| at <= local) {
            self.repeat_at = None;
            out.extend(writer.in_flight().cloned().map(Output::Commit));
        }
        while writer.next_wake().is_some_and(|at| at <= now) {
            let (entry, released) = writer.step(now);
            release(released, out);
            out.extend(entry.map(Output::Commit));
        }
    }

    /// Local time at which to call [`Server::handle`] with a tick, if nothing happens before.
    pub fn next_wake(&self) -> Option<Moment> {
        let lead = Some(self.ask_at).filter(|_| self.may_ask());
        let writer = match &self.role {
            Role::Leader(writer) => writer.next_wake().map(|at| self.clock.local(at)),
            _ => None,
        };
        [lead, writer, self.repeat_at].into_iter().flatten().min()
    }
}

/// What a worker that leaves says last.
fn is_last_word(command: &Command) -> bool {
    matches!(command, Command::Finish(_) | Command::Leave(_))
}

fn release(released: Released, out: &mut Vec<Output>) {
    out.extend(released.entry.map(Output::Written));
    out.extend(
        released.answers.into_iter().map(|(ticket, answer)| Output::Answer { ticket, answer: Some(answer) }),
    );
    out.extend(released.effects.into_iter().map(Output::Effect));
}
