//! The processes of a worker: asks the guardian to start and stop them, and makes outcomes of what it tells.
//!
//! A guardian is started with the first process and again after it died. When it dies, the worker kills the
//! groups it knows of and whoever bears the guardian's mark, and their attempts have failed: nobody would end
//! them in time any more.

use crate::clock;
use crate::guardian::GuardianCommand;
use crate::guardian::handle::Handle;
use crate::guardian::wire::{Command, Event, Id, Spawn, Stream};
use crate::logs::{LogLine, LogSink};
use crate::outcome::of_process;
use crate::output::Capture;
use crate::secrets::{Secrets, Veil};
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::{BTreeMap, VecDeque};
use std::future::pending;
use std::time::Duration;
use tidegate_core::ids::RunId;
use tidegate_core::protocol::{Lease, Outcome};
use tidegate_core::time::{Moment, Span};

/// How long the end of the worker waits for a guardian that does not end; then it kills what it knows of itself.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is to run, and by when it must be over.
pub(crate) struct ProcessOrder {
    pub(crate) run: RunId,
    pub(crate) argv: Vec<String>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) cwd: Option<String>,
    /// What it knows and nobody else may see.
    pub(crate) secrets: Secrets,
    pub(crate) deadline: Moment,
    pub(crate) grace: Span,
}

struct Live {
    lease: Lease,
    run: RunId,
    /// Known once the guardian has said so.
    leader: Option<Pid>,
    capture: Capture,
    secrets: Secrets,
    veils: [Veil; 2],
}

impl Live {
    /// Keeps a piece of what it wrote, and gives what others may see of it.
    fn take_in(&mut self, stream: Stream, text: String, newline: bool) -> String {
        let shown = self.veils[stream as usize].pass(&self.secrets, text, newline);
        self.capture.push(stream, &shown, newline);
        shown
    }
}

pub(crate) struct Processes {
    /// Without one, nothing can be started.
    command: Option<GuardianCommand>,
    logs: LogSink,
    guardian: Option<Handle>,
    live: BTreeMap<Id, Live>,
    ids: BTreeMap<Lease, Id>,
    next_id: Id,
    /// Ended without the guardian saying so.
    ended: VecDeque<(Lease, Outcome)>,
}

impl Processes {
    pub(crate) fn new(command: Option<GuardianCommand>, logs: LogSink) -> Processes {
        Processes {
            command,
            logs,
            guardian: None,
            live: BTreeMap::new(),
            ids: BTreeMap::new(),
            next_id: 0,
            ended: VecDeque::new(),
        }
    }

    pub(crate) fn start(&mut self, lease: Lease, order: ProcessOrder) {
        let guardian = match &mut self.guardian {
            Some(guardian) => guardian,
            none => match start_guardian(self.command.as_ref()) {
                Ok(guardian) => none.insert(guardian),
                Err(error) => return self.ended.push_back((lease, Outcome::failed(error))),
            },
        };
        let id = self.next_id;
        self.next_id += 1;
        let ProcessOrder { run, argv, env, cwd, secrets, deadline, grace } = order;
        guardian.tell(Command::Spawn(Spawn { id, argv, env, cwd, deadline, grace }));
        let live = Live {
            lease,
            run,
            leader: None,
            capture: Capture::default(),
            secrets,
            veils: Default::default(),
        };
        self.live.insert(id, live);
        self.ids.insert(lease, id);
    }

    pub(crate) fn extend(&self, lease: Lease, deadline: Moment) {
        self.tell(lease, |id| Command::Extend { id, deadline });
    }

    pub(crate) fn stop(&self, lease: Lease) {
        self.tell(lease, |id| Command::Stop { id });
    }

    fn tell(&self, lease: Lease, command: impl Fn(Id) -> Command) {
        if let (Some(guardian), Some(&id)) = (&self.guardian, self.ids.get(&lease)) {
            guardian.tell(command(id));
        }
    }

    /// The next process that ends; waits for ever if there is none. May be dropped and called again.
    pub(crate) async fn next(&mut self) -> (Lease, Outcome) {
        loop {
            if let Some(ended) = self.ended.pop_front() {
                return ended;
            }
            let Some(guardian) = &mut self.guardian else { return pending().await };
            match guardian.next().await {
                Some(event) => self.heard(event),
                None => self.guardian_died(),
            }
        }
    }

    fn heard(&mut self, event: Event) {
        match event {
            Event::Started { id, pid } => {
                if let Some(live) = self.live.get_mut(&id) {
                    live.leader = Pid::from_raw(pid);
                }
            }
            Event::NotStarted { id, error } => {
                self.end(id, |live| Outcome::failed(live.secrets.conceal(&error)));
            }
            Event::Line { id, at, stream, text, newline } => {
                let Some(live) = self.live.get_mut(&id) else { return };
                let text = live.take_in(stream, text, newline);
                if text.is_empty() && !newline {
                    return;
                }
                (self.logs)(LogLine { run: live.run, lease: live.lease, at, stream, text, newline });
            }
            Event::Exited { id, exit } => {
                self.say_what_was_held_back(id);
                self.end(id, |live| of_process(exit, &live.capture));
            }
        }
    }

    /// The end of an output without a newline might have been the beginning of a secret.
    fn say_what_was_held_back(&mut self, id: Id) {
        let Some(live) = self.live.get_mut(&id) else { return };
        for stream in [Stream::Stdout, Stream::Stderr] {
            let Some(text) = live.veils[stream as usize].rest(&live.secrets) else { continue };
            live.capture.push(stream, &text, false);
            let (run, lease, at) = (live.run, live.lease, clock::wall());
            (self.logs)(LogLine { run, lease, at, stream, text, newline: false });
        }
    }

    fn end(&mut self, id: Id, outcome: impl FnOnce(&Live) -> Outcome) {
        if let Some(live) = self.live.remove(&id) {
            self.ids.remove(&live.lease);
            self.ended.push_back((live.lease, outcome(&live)));
        }
    }

    fn guardian_died(&mut self) {
        let guardian = self.guardian.take();
        self.ids.clear();
        for live in std::mem::take(&mut self.live).into_values() {
            if let Some(leader) = live.leader {
                // Nobody left is what is wanted.
                let _ = kill_process_group(leader, Signal::KILL);
            }
            let error = "the guardian of its process died, so the process was killed";
            self.ended.push_back((live.lease, Outcome::failed(error)));
        }
        if let Some(guardian) = guardian {
            guardian.kill_what_is_left();
        }
    }

    /// Kills everything, and tells how all that was left has ended.
    pub(crate) async fn close(&mut self) -> Vec<(Lease, Outcome)> {
        let told = tokio::time::timeout(PATIENCE, self.hear_out_guardian()).await;
        if told.is_err() {
            self.guardian_died();
        }
        let killed = std::mem::take(&mut self.live).into_values().map(|live| (live.lease, Outcome::Stopped));
        self.ids.clear();
        self.ended.drain(..).chain(killed).collect()
    }

    /// What it still says before it ends may be the ends of processes that came first.
    async fn hear_out_guardian(&mut self) {
        while let Some(guardian) = &mut self.guardian {
            guardian.hang_up();
            match guardian.next().await {
                Some(event) => self.heard(event),
                None => self.guardian = None,
            }
        }
    }
}

/// The error is a sentence.
fn start_guardian(command: Option<&GuardianCommand>) -> Result<Handle, String> {
    let command = command.ok_or("this worker runs no processes")?;
    Handle::start(command).map_err(|error| {
        format!("this worker cannot start its guardian `{}`: {error}", command.program.display())
    })
}
