//! One attempt's processes, from the start of its leader to the end of the last of them.

use super::family::{Family, Left};
use super::output::Output;
use super::wire::{Event, Exit, Id, Spawn, Stream};
use super::{environment, refusal};
use crate::clock;
use rustix::process::{Pid, WaitStatus};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use tidegate_core::time::{Moment, Span};
use tokio::sync::{mpsc, oneshot, watch};

/// How soon to look again for those who were just forking when they should have been killed.
const AGAIN: Span = Span::millis(5);

/// When to kill a leader again that has been killed and is not gone: it hangs in the kernel.
const STUCK: Span = Span::seconds(1);

/// How long those who have been killed may take to be gone. Longer takes only who hangs in the kernel or belongs
/// to another user, and waiting does not help with them.
const DYING: Span = Span::seconds(2);

/// How long to wait for orphans that nobody is known to be the origin of.
const DOUBT: Span = Span::millis(40);

/// What the worker says about a running process.
pub(super) enum Told {
    Extend(Moment),
    Stop,
}

pub(super) struct Process {
    id: Id,
    child: Child,
    family: Arc<Family>,
    end: oneshot::Receiver<WaitStatus>,
    deadline: Moment,
    grace: Span,
    told: mpsc::UnboundedReceiver<Told>,
}

impl Process {
    /// Starts it as the leader of a group of its own. The error is a sentence.
    pub(super) fn start(
        order: &Spawn,
        family: Arc<Family>,
        told: mpsc::UnboundedReceiver<Told>,
    ) -> Result<Process, String> {
        let (program, arguments) = order.argv.split_first().ok_or("cannot start: `run` names no program")?;
        if order.deadline <= clock::now() {
            return Err(format!("cannot start `{program}`: its lease ran out before it could"));
        }
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .envs(environment::compose(std::env::vars_os(), &order.env))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        if let Some(cwd) = &order.cwd {
            command.current_dir(cwd);
        }
        let (child, end) =
            family.start(order.id, &mut command).map_err(|error| refusal::explain(order, &error))?;
        Ok(Process { id: order.id, child, family, end, deadline: order.deadline, grace: order.grace, told })
    }

    /// Tells the worker everything about it until it has ended.
    pub(super) async fn run(mut self, events: mpsc::Sender<Event>) -> Id {
        let (ended, over) = watch::channel(false);
        let id = self.id;
        let started = Event::Started { id, pid: Pid::from_child(&self.child).as_raw_nonzero().get() };
        let (stdout, stderr) = (self.child.stdout.take(), self.child.stderr.take());
        let output = |stream| Output { id, stream, events: events.clone(), over: over.clone() };
        let tell = async {
            let _ = events.send(started).await;
            tokio::join!(
                forward(output(Stream::Stdout), stdout.map(OwnedFd::from)),
                forward(output(Stream::Stderr), stderr.map(OwnedFd::from)),
            )
        };
        // Watching never waits for telling: a worker that does not read must not outlive a deadline.
        let watch = async {
            let exit = self.watch().await;
            let _ = ended.send(true);
            exit
        };
        let (_, exit) = tokio::join!(tell, watch);
        let _ = events.send(Event::Exited { id, exit }).await;
        id
    }

    async fn watch(&mut self) -> Exit {
        let mut due = self.deadline;
        let mut grace_ends = None;
        let status = loop {
            tokio::select! {
                // An end that came first counts as its own.
                biased;
                status = &mut self.end => break status.ok(),
                Some(told) = self.told.recv() => match told {
                    Told::Extend(deadline) if grace_ends.is_none() => due = deadline,
                    Told::Stop if grace_ends.is_none() => {
                        grace_ends = self.terminate(clock::now());
                        due = grace_ends.unwrap_or(due);
                    }
                    Told::Extend(_) | Told::Stop => {}
                },
                () = clock::sleep_until(due) => {
                    if grace_ends.is_some() {
                        self.family.kill(self.id);
                        due = clock::now() + STUCK;
                    } else {
                        grace_ends = self.terminate(due);
                        due = grace_ends.unwrap_or(due);
                    }
                }
            }
        };
        self.end_the_others(grace_ends.unwrap_or_else(clock::now)).await;
        self.family.forget(self.id);
        Exit {
            code: status.and_then(WaitStatus::exit_status),
            signal: status.and_then(WaitStatus::terminating_signal),
            stopped: grace_ends.is_some(),
        }
    }

    /// The end of its grace, if its leader was still there to be asked.
    fn terminate(&self, from: Moment) -> Option<Moment> {
        self.family.terminate(self.id).then_some(from + self.grace)
    }

    /// The leader may have left others behind. They have until `due`.
    async fn end_the_others(&self, due: Moment) {
        let began = clock::now();
        let give_up = began.max(due) + DYING;
        let mut ends = self.family.ends();
        loop {
            let now = clock::now();
            let is_due = now >= due;
            let left = if is_due { self.family.kill(self.id) } else { self.family.left(self.id) };
            let look_again = match left {
                Left::Somebody if !is_due => due,
                Left::Somebody if now < give_up => now + AGAIN,
                Left::Perhaps if now < began + DOUBT => now + AGAIN,
                _ => return,
            };
            tokio::select! {
                _ = ends.changed() => {}
                () = clock::sleep_until(look_again) => {}
            }
        }
    }
}

async fn forward(output: Output, pipe: Option<OwnedFd>) {
    if let Some(pipe) = pipe {
        output.forward(pipe).await;
    }
}
