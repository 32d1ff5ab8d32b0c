//! Waits for the end of a run, and shows the way there.
//!
//! The engine tells what was committed, here or where another process leads. Whoever listens too slowly misses some, so the
//! store has the last word: it is read again after a gap, and asked now and then whether the run has ended.

use super::backlog::{Backlog, Taken};
use super::event::{Event, What};
use super::interrupts::Interrupts;
use super::local::Local;
use super::show::{Show, waits};
use super::view::View;
use crate::args;
use crate::failure::{Exit, Failure};
use crate::time::now;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tidegate::{Entries, EventsError};
use tidegate_core::admission::LimitKey;
use tidegate_core::explain::{Blocker, Explanation, brief};
use tidegate_core::ids::{NodeId, TaskId};
use tidegate_core::protocol::{Command, Write};
use tidegate_core::state::State;
use tidegate_store::{Entry, Reads, StoreError};
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

/// How often the store is asked whether the run has ended, whatever was or was not heard.
const CHECK: Duration = Duration::from_secs(2);
/// Tasks asked about at once: an explanation looks at everything open.
const ASKED: usize = 24;
/// Lines of each attempt that are shown before anything else gets its turn.
const LINES_AT_ONCE: usize = 100;

pub struct Watch<'a> {
    pub view: View,
    pub show: Show,
    pub entries: Entries,
    pub backlog: Arc<Backlog>,
    pub store: &'a args::Store,
    /// What each was last said to wait for.
    pub told: BTreeMap<NodeId, Option<LimitKey>>,
    /// Why the store cannot be used, as long as it cannot.
    pub outage: watch::Receiver<Option<StoreError>>,
    /// Entries were missed, and the store could not be read since.
    pub behind: bool,
    /// The store said that the run has ended, and nothing was heard of it yet.
    pub end_unheard: bool,
}

pub struct Watched {
    pub state: State,
    pub interrupted: bool,
}

impl Watch<'_> {
    pub async fn until_ended(
        mut self,
        local: &mut Local,
        interrupts: &mut Interrupts,
    ) -> Result<Watched, Failure> {
        let mut pace = tokio::time::interval(self.show.pace());
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut check = tokio::time::interval(CHECK);
        let mut interrupted = false;
        let backlog = self.backlog.clone();
        while self.view.end().is_none() {
            // What an interrupt asks for cannot be written, so nobody waits for it.
            if interrupted && self.view.outage.is_some() {
                return Err(self.give_up(local, interrupts).await);
            }
            tokio::select! {
                biased;
                () = interrupts.next() => {
                    if interrupted {
                        return Err(self.kill());
                    }
                    interrupted = true;
                    self.cancel(local);
                }
                entry = self.entries.next() => match entry {
                    Ok(entry) => {
                        // What was written after an outage comes after its end, which the engine told before.
                        if self.outage.has_changed().unwrap_or(false) {
                            self.outage_changed(local)?;
                        }
                        self.committed(&entry);
                    }
                    Err(EventsError::Missed { .. }) => {
                        self.behind = true;
                        self.catch_up(local)?;
                    }
                    Err(EventsError::Store(error)) => return Err(Failure::store(&error, &self.store.path)),
                    Err(EventsError::Ended) => return Err(self.abandoned(local)?),
                },
                () = backlog.arrived() => self.show_lines(LINES_AT_ONCE, |_| true),
                Ok(()) = self.outage.changed() => self.outage_changed(local)?,
                _ = pace.tick() => {
                    self.ask(local).await;
                    self.show.refresh(&self.view);
                }
                _ = check.tick() => {
                    self.catch_up(local)?;
                    local.release_killed(&self.store.path).await;
                }
            }
        }
        self.show_lines(usize::MAX, |_| true);
        let state = self.view.end().unwrap_or(State::Failed);
        self.show.finish(&self.view);
        Ok(Watched { state, interrupted })
    }

    fn root(&self) -> TaskId {
        TaskId::node(self.view.root)
    }

    /// Shows what tasks wrote whose start was heard of: a quick one writes before its commit is told.
    fn show_lines(&mut self, most: usize, of: impl Fn(TaskId) -> bool) {
        for Taken { task, missed, lines } in
            self.backlog.take(most, |task| of(task) && self.view.has_started(task))
        {
            if let (Some(first), Some(name)) = (lines.first().filter(|_| missed > 0), self.view.name(task)) {
                self.show.tell(&Event { at: first.at, name, what: What::NotShown(missed) });
            }
            for line in lines {
                if let Some(name) = self.view.heard(task, &line.text) {
                    self.show.tell(&Event { at: line.at, name, what: What::Wrote(line.text) });
                }
            }
        }
    }

    fn committed(&mut self, entry: &Entry) {
        for write in &entry.writes {
            // What an attempt wrote comes before its end, and has arrived before it.
            if let Write::Ended { task: over, .. } | Write::Moved { task: over, .. } = write {
                self.show_lines(usize::MAX, |task| task == *over);
            }
            if let Some(event) = self.view.apply(write) {
                self.show.tell(&event);
            }
        }
        self.show_lines(LINES_AT_ONCE, |_| true);
    }

    /// Says once that the store cannot be written, and once that it can again. What never passes ends the watch.
    fn outage_changed(&mut self, local: &mut Local) -> Result<(), Failure> {
        let why = self.outage.borrow_and_update().clone();
        let path = self.store.path.display();
        let what = match why {
            Some(_) if self.view.outage.is_some() => return Ok(()),
            Some(StoreError::Unusable(why) | StoreError::Unknown(why)) => {
                What::Outage(format!("cannot write to {path}: {why}; trying again"))
            }
            Some(why) => return Err(Failure::store(&why, &self.store.path)),
            None => What::OutageOver(format!("{path} can be written again; the run goes on")),
        };
        let name = self.view.name(self.root()).unwrap_or_default();
        self.show.tell(&Event { at: now(), name, what: what.clone() });
        self.view.outage = match what {
            What::Outage(text) => Some(text),
            _ => None,
        };
        // Whether the last entry before it became durable was not told.
        self.behind = true;
        self.catch_up(local)
    }

    /// Reads what is stored if something was missed, or if the run has ended unheard. A store that cannot be read
    /// now is read later.
    fn catch_up(&mut self, local: &mut Local) -> Result<(), Failure> {
        match self.reload(local) {
            Err(error) if error.may_pass() => Ok(()),
            result => result.map_err(|error| Failure::store(&error, &self.store.path)),
        }
    }

    fn reload(&mut self, local: &mut Local) -> Result<(), StoreError> {
        let root = self.root();
        let ended = local.reader.ended(root)?;
        // The first time its end is probably on its way here, with all that came before.
        let was_unheard = std::mem::replace(&mut self.end_unheard, ended.is_some());
        let ended = ended.filter(|_| was_unheard);
        if ended.is_none() && !self.behind {
            return Ok(());
        }
        let snapshot = local.reader.load()?.snapshot;
        self.behind = false;
        self.view.reload(&snapshot);
        self.show_lines(LINES_AT_ONCE, |_| true);
        if let Some(ended) = ended {
            let (state, error, at) = (ended.state, ended.error, snapshot.now);
            let event = self.view.apply(&Write::Ended { task: root, state, output: None, error, at });
            event.iter().for_each(|event| self.show.tell(event));
        }
        Ok(())
    }

    /// The engine is gone: nothing more will be heard.
    fn abandoned(&self, local: &mut Local) -> Result<Failure, Failure> {
        let ended =
            local.reader.ended(self.root()).map_err(|error| Failure::store(&error, &self.store.path))?;
        Ok(match ended {
            Some(_) => Failure::new("engine", "the engine ended with the run"),
            None => Failure::new("engine", "the engine ended before the run did")
                .help(format!("`{}` goes on with it", self.store.resume())),
        }
        .at(self.store.path.display()))
    }

    fn cancel(&self, local: &Local) {
        let engine = local.tide.engine().clone();
        let root = self.root();
        // Its end is heard like that of any run; a run that has ended meanwhile needs no cancelling.
        tokio::spawn(async move { engine.outlast(Command::Cancel(root)).await });
    }

    /// The run cannot be cancelled; what runs here can be stopped, and whoever cannot wait interrupts again.
    async fn give_up(self, local: &mut Local, interrupts: &mut Interrupts) -> Failure {
        tokio::select! {
            () = local.stop_work() => {}
            () = interrupts.next() => return self.kill(),
        }
        let why = self.outage.borrow().clone();
        let why = why.map_or_else(String::new, |why| format!(" ({why})"));
        self.show.finish(&self.view);
        let sentence = format!("what was running has been stopped, but the run is not cancelled{why}");
        Failure::new("interrupted", sentence)
            .at(self.store.path.display())
            .help(format!("`{}` goes on with it", self.store.resume()))
            .exit(Exit::Interrupted)
    }

    /// The process ends at once; with it the pipe to the guardian closes, which ends all that runs.
    fn kill(self) -> Failure {
        self.show.finish(&self.view);
        Failure::new("interrupted", "what was running has been killed, and the run is still open")
            .help(format!("`{}` brings it to its end", self.store.resume()))
            .exit(Exit::Interrupted)
    }

    /// Finds out what waits for what.
    async fn ask(&mut self, local: &Local) {
        let tasks: Vec<TaskId> = self.view.waiting().into_iter().take(ASKED).collect();
        if tasks.is_empty() || !self.show.asks() {
            return;
        }
        for task in tasks {
            // An engine that cannot answer now is asked again soon.
            let Ok(why) = local.tide.engine().explain(task).await else { return };
            let (limit, text) = why.and_then(worth_telling).unzip();
            self.view.waits(task, text.clone());
            // Numbers change all the time; only another reason is news.
            if let (Some(limit), Some(text)) = (limit, text)
                && self.told.insert(task.node, limit.clone()) != Some(limit)
                && let Some(event) = waits(&self.view, task, &text)
            {
                self.show.tell(&event);
            }
        }
    }
}

/// The limit that refuses a task first, and the reason in words. That a loop's window is full is what windows are
/// for; the numbers beside the bar say so.
fn worth_telling(why: Explanation) -> Option<(Option<LimitKey>, String)> {
    if matches!(why.blockers.first(), Some(Blocker { limit: LimitKey::Window(_), .. })) {
        return None;
    }
    let text = brief(&why)?;
    Some((why.blockers.into_iter().next().map(|blocker| blocker.limit), text))
}
