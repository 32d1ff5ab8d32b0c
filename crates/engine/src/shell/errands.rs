//! Commands of callers: taken in, looked up where they may be repetitions, forwarded where another server leads, and
//! answered together.

use super::EngineError;
use super::request::{Answers, Collected, Errand, Waiter};
use super::store_thread::{Job, Lookups};
use super::work::Shell;
use crate::writer::{QUEUE, Ticket};
use tidegate_core::ids::RunId;
use tidegate_core::protocol::{Answer, Command, Idempotency, Refusal, Submit};
use tidegate_store::{Found, Sought, StoreError};

/// Whether commands only keep or free something: then they do not wait behind those that want more.
pub(crate) fn is_urgent(commands: &[Command]) -> bool {
    let frees = |command: &Command| {
        matches!(
            command.plain(),
            Command::Finish(_)
                | Command::Heartbeat(_)
                | Command::Cancel(_)
                | Command::Join(_)
                | Command::Leave(_)
                | Command::Offer { .. }
        )
    };
    commands.iter().all(frees)
}

impl Errand {
    fn submits(&self) -> impl Iterator<Item = &Submit> {
        self.commands.iter().filter_map(|command| match command {
            Command::Submit(submit) => Some(submit),
            _ => None,
        })
    }

    /// The ids under which something is to be accepted.
    fn ids(&self) -> impl Iterator<Item = RunId> {
        self.commands.iter().filter_map(new_id)
    }

    /// What the store has to be asked before it is taken in: the core forgets what has ended. Ids are new unless the
    /// errand is repeated; keys are chosen by callers.
    fn sought(&self) -> Vec<Sought> {
        let ids = self.ids().filter(|_| self.again).map(Sought::Id);
        let keys = self
            .submits()
            .filter_map(|submit| submit.idempotency.as_ref())
            .map(|known| Sought::Key(known.key.clone()));
        ids.chain(keys).collect()
    }
}

/// The id of what a command wants accepted.
fn new_id(command: &Command) -> Option<RunId> {
    match command {
        Command::Submit(submit) => Some(submit.id),
        Command::Retry(retry) => Some(retry.id),
        _ => None,
    }
}

/// Where a look-up found what a command asks for already.
fn is_known(command: &Command, sought: &[Sought], found: &[Option<Found>]) -> Option<Answer> {
    match command {
        Command::Submit(submit) => known(submit.id, submit.idempotency.as_ref(), sought, found),
        command => known(new_id(command)?, None, sought, found),
    }
}

/// The same for an id, and a key if there is one.
pub(super) fn known(
    id: RunId,
    idempotency: Option<&Idempotency>,
    sought: &[Sought],
    found: &[Option<Found>],
) -> Option<Answer> {
    let mut pairs = sought.iter().zip(found);
    pairs.find_map(|(sought, found)| {
        let found = found.as_ref()?;
        match sought {
            Sought::Id(sought) if *sought == id => Some(Answer::Accepted { node: found.node, again: true }),
            Sought::Key(key) => {
                let asked = idempotency.filter(|asked| asked.key == *key)?;
                Some(match found.content == Some(asked.content) {
                    true => Answer::Accepted { node: found.node, again: true },
                    false => Answer::Refused(Refusal::KeyConflict(key.clone())),
                })
            }
            Sought::Id(_) | Sought::Part(_) => None,
        }
    })
}

impl Shell {
    pub(super) fn run_errand(&mut self, errand: Errand) {
        if errand.forward {
            self.upstream.remember(&errand.commands);
        }
        let Some(errand) = self.unless_stalled(errand) else { return };
        if !self.server.leads() {
            return self.forward(errand);
        }
        if errand.kept.is_none() && errand.retried().next().is_some() {
            return self.recall(errand);
        }
        let sought = errand.sought();
        if sought.is_empty() {
            return self.take_in(errand, &[], &[]);
        }
        // The same thread commits, so what it has not found cannot have ended before it is taken in here.
        self.look_up(Lookups::Errand(errand), sought);
    }

    pub(super) fn look_up(&mut self, who: Lookups, sought: Vec<Sought>) {
        self.lookups.push_back((who, sought.clone()));
        let _ = self.store_jobs.send(Job::Find(sought));
    }

    pub(super) fn looked_up(&mut self, found: Result<Vec<Option<Found>>, StoreError>) {
        let Some((who, sought)) = self.lookups.pop_front() else { return };
        match (who, found) {
            (Lookups::Errand(errand), Ok(found)) => self.take_in(errand, &sought, &found),
            (Lookups::Errand(errand), Err(error)) => drop(errand.reply.send(Err(EngineError::Outage(error)))),
            (Lookups::Letters(newcomers), Ok(found)) => self.post(newcomers, &sought, &found),
            (Lookups::Gone, _) => {}
            // They are read again.
            (Lookups::Letters(newcomers), Err(_)) => {
                newcomers.iter().for_each(|newcomer| self.letters.forget(newcomer.number));
            }
        }
        self.tick();
    }

    fn take_in(&mut self, errand: Errand, sought: &[Sought], found: &[Option<Found>]) {
        if self.server.waiting() + errand.commands.len() > QUEUE {
            return drop(errand.reply.send(Err(EngineError::Unavailable)));
        }
        let count = errand.commands.len();
        let id = self.next_errand;
        self.next_errand += 1;
        let Errand { commands, kept, reply, .. } = errand;
        let collected = Collected { answers: vec![None; count], missing: count, reply };
        self.errands.insert(id, collected);
        for (index, command) in commands.into_iter().enumerate() {
            match is_known(&command, sought, found) {
                Some(answer) => self.collect(id, index, Some(answer)),
                None => self.take(Waiter::Errand { errand: id, index, _kept: kept.clone() }, command),
            }
        }
        if count == 0 {
            self.conclude(id, Ok(Vec::new()));
        }
    }

    pub(super) fn answer(&mut self, ticket: Ticket, answer: Option<Answer>) {
        match self.waiters.remove(&ticket) {
            Some(Waiter::Errand { errand, index, .. }) => self.collect(errand, index, answer),
            // One without an answer is reported again by its worker.
            Some(Waiter::Report { worker, lease }) if answer.is_some() => self.acknowledge(&worker, lease),
            Some(Waiter::Letter(number)) => self.letters.forget(number),
            Some(Waiter::Report { .. } | Waiter::Nobody) | None => {}
        }
    }

    /// Without all of its answers an errand has none: nobody knows what became of the rest.
    fn collect(&mut self, errand: u64, index: usize, answer: Option<Answer>) {
        let Some(collected) = self.errands.get_mut(&errand) else { return };
        let Some(answer) = answer else {
            return self.conclude(errand, Err(self.unavailable()));
        };
        collected.answers[index] = Some(answer);
        collected.missing -= 1;
        if collected.missing == 0 {
            let answers = collected.answers.iter_mut().filter_map(Option::take).collect();
            self.conclude(errand, Ok(answers));
        }
    }

    fn conclude(&mut self, errand: u64, answers: Answers) {
        if let Some(collected) = self.errands.remove(&errand) {
            // Whoever asked may have gone away meanwhile.
            let _ = collected.reply.send(answers);
        }
    }
}
