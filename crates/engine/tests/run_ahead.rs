//! Where a process owns its store alone, functions need not wait for the commit of their grant. Everything else does.

mod support;

use support::{join, submit, succeeded};
use tidegate_core::model::{Action, ActionPolicy, Each, RatePolicy, WhenExhausted};
use tidegate_core::protocol::{Answer, Command, Declare, Effect, Lease};
use tidegate_core::time::{Moment, Span};
use tidegate_engine::{Input, Output, Server};
use tidegate_store::{Commit, Loaded, StoreError, Term};

/// A server whose store answers when the test says so.
struct Driven {
    server: Server,
    now: Moment,
    tickets: u64,
}

#[derive(Default, Debug)]
struct Seen {
    delivered: Vec<Lease>,
    answers: Vec<Option<Answer>>,
    aborted: Vec<Lease>,
    commits: usize,
    asks_to_lead: bool,
    asks_to_go_on: bool,
    loads: bool,
}

impl Driven {
    fn new(alone: bool, clean: bool) -> Driven {
        let mut driven = Driven { server: Server::new("a".into()), now: Moment(1_000_000), tickets: 0 };
        driven.tell(Input::Tick);
        driven.lead(alone, clean);
        driven
    }

    fn lead(&mut self, alone: bool, clean: bool) {
        let term = Term { term: 1, clock: self.now, alone, clean };
        self.tell(Input::Led(Ok(Some(term))));
        self.tell(Input::Loaded(Ok(Loaded::default())));
        self.apply([Command::Declare(declare()), join(8)]);
        self.commit();
    }

    fn tell(&mut self, input: Input) -> Seen {
        let mut outputs = Vec::new();
        self.server.handle(input, self.now, &mut outputs);
        let mut seen = Seen::default();
        for output in outputs {
            match output {
                Output::Effect(Effect::Deliver { lease, .. }) => seen.delivered.push(lease),
                Output::Answer { answer, .. } => seen.answers.push(answer),
                Output::Abort(leases) => seen.aborted = leases,
                Output::Commit(_) => seen.commits += 1,
                Output::Lead { mine: None, .. } => seen.asks_to_lead = true,
                Output::Lead { mine: Some(_), .. } => seen.asks_to_go_on = true,
                Output::Load => seen.loads = true,
                _ => {}
            }
        }
        seen
    }

    fn apply(&mut self, commands: impl IntoIterator<Item = Command>) -> Seen {
        for command in commands {
            self.tickets += 1;
            self.tell(Input::Command { ticket: self.tickets, command });
        }
        self.tell(Input::Tick)
    }

    /// What the end of a commit brings, and the tick after it.
    fn commit(&mut self) -> Seen {
        let released = self.tell(Input::Committed(Ok(Commit::Done)));
        let Seen { commits, .. } = self.tell(Input::Tick);
        Seen { commits, ..released }
    }
}

fn declare() -> Declare {
    let rate = RatePolicy { limit: 1, per: Span::hours(1), burst: 5, when_busy: WhenExhausted::Wait };
    let paced = Each { rate: Some(rate), ..Each::default() };
    let actions = [("mail", Each::default()), ("paced", paced)];
    let action = |(name, each): (&str, Each)| {
        let policy = ActionPolicy { each, ..ActionPolicy::silent(name.into()) };
        Action::function(policy)
    };
    Declare { actions: actions.into_iter().map(action).collect(), ..Declare::default() }
}

fn job(id: u128) -> Command {
    Command::Submit(submit(id))
}

#[test]
fn a_function_starts_at_once_and_its_answer_waits() {
    let mut driven = Driven::new(true, true);
    let seen = driven.apply([job(1)]);
    assert_eq!((seen.delivered.len(), seen.answers.len(), seen.commits), (1, 0, 1));
    // While the first commit is under way: its slot is used again, and still nothing is answered.
    let seen = driven.apply([Command::Finish(succeeded(seen.delivered[0])), job(2)]);
    assert_eq!((seen.delivered.len(), seen.answers.len(), seen.commits), (1, 0, 0));
    let seen = driven.commit();
    assert_eq!((seen.delivered.len(), seen.answers.len(), seen.commits), (0, 1, 1));
    assert_eq!(driven.commit().answers.len(), 2);
}

#[test]
fn where_others_may_lead_everything_waits() {
    let mut driven = Driven::new(false, true);
    assert_eq!(driven.apply([job(1)]).delivered, []);
    assert_eq!(driven.commit().delivered.len(), 1);
}

#[test]
fn after_a_leader_that_did_not_resign_grants_wait_for_a_minute() {
    let mut driven = Driven::new(true, false);
    assert_eq!(driven.apply([job(1)]).delivered, []);
    assert_eq!(driven.commit().delivered.len(), 1);
    driven.now = driven.now + Span::seconds(61);
    driven.apply([]);
    driven.commit();
    assert_eq!(driven.apply([job(2)]).delivered.len(), 1);
}

#[test]
fn what_a_rate_counts_is_durable_before_it_starts() {
    let mut driven = Driven::new(true, true);
    let skilled = match join(8) {
        Command::Join(mut join) => {
            join.skills.functions.push("paced".into());
            join.incarnation = 2;
            Command::Join(join)
        }
        other => other,
    };
    driven.apply([skilled]);
    driven.commit();
    let mut paced = submit(1);
    paced.what = tidegate_core::protocol::Submission::Job {
        action: "paced".into(),
        key: None,
        order: tidegate_core::protocol::Payload::new("1"),
    };
    assert_eq!(driven.apply([Command::Submit(paced)]).delivered, []);
    assert_eq!(driven.commit().delivered.len(), 1);
}

#[test]
fn what_ran_ahead_of_a_core_that_is_given_up_has_ended_before_there_is_another() {
    let mut driven = Driven::new(true, true);
    let committed = driven.apply([job(1)]).delivered;
    driven.commit();
    let ahead: Vec<Lease> = [driven.apply([job(2)]), driven.apply([job(3)])]
        .into_iter()
        .flat_map(|seen| seen.delivered)
        .collect();
    let seen = driven.tell(Input::Committed(Err(StoreError::Unusable("disk full".to_owned()))));
    assert_eq!(seen.aborted, ahead, "and not {committed:?}, which is durable");
    assert_eq!(seen.answers, [None, None]);
    driven.now = driven.now + Span::seconds(10);
    assert!(!driven.tell(Input::Tick).asks_to_lead);
    assert_eq!(driven.server.next_wake(), None, "it waits for those that were aborted");
    assert!(driven.tell(Input::Aborted).asks_to_lead);
}

/// The store may answer both questions in any order, and epochs of a term must not be given twice.
#[test]
fn a_lead_that_is_extended_after_its_core_was_given_up_is_not_taken_up_again() {
    for runs_ahead in [true, false] {
        let mut driven = Driven::new(true, true);
        driven.now = driven.now + Span::seconds(2);
        assert!(driven.tell(Input::Tick).asks_to_go_on);
        let submitted = if runs_ahead { job(1) } else { Command::Declare(declare()) };
        driven.apply([submitted]);
        let seen = driven.tell(Input::Committed(Err(StoreError::Unusable("disk full".to_owned()))));
        assert_eq!(seen.aborted.len(), usize::from(runs_ahead));
        let extended = Term { term: 1, clock: driven.now, alone: true, clean: false };
        let mut seen = driven.tell(Input::Led(Ok(Some(extended))));
        assert!(!seen.loads && !driven.server.leads());
        if runs_ahead {
            assert!(!seen.asks_to_lead, "something of the core that was given up still runs");
            seen = driven.tell(Input::Aborted);
        }
        assert!(seen.asks_to_lead, "for a term of its own");
        let next = Term { term: 2, clock: driven.now, alone: true, clean: false };
        assert!(driven.tell(Input::Led(Ok(Some(next)))).loads);
    }
}

#[test]
fn a_lead_that_is_extended_while_it_is_loaded_is_as_clean_as_it_was() {
    let mut driven = Driven { server: Server::new("a".into()), now: Moment(1_000_000), tickets: 0 };
    driven.tell(Input::Tick);
    let term = Term { term: 1, clock: driven.now, alone: true, clean: true };
    assert!(driven.tell(Input::Led(Ok(Some(term.clone())))).loads);
    driven.now = driven.now + Span::seconds(2);
    assert!(driven.tell(Input::Tick).asks_to_go_on, "loading takes long");
    let extended = Term { clock: driven.now, clean: false, ..term };
    assert!(!driven.tell(Input::Led(Ok(Some(extended)))).loads, "once is enough");
    driven.tell(Input::Loaded(Ok(Loaded::default())));
    driven.apply([Command::Declare(declare()), join(8)]);
    driven.commit();
    assert_eq!(driven.apply([job(1)]).delivered.len(), 1, "it runs ahead");
}
