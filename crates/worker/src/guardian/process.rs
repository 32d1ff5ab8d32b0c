//! One process and its group, from start to end.

use super::group::Group;
use super::output::Output;
use super::wire::{Event, Exit, Id, Spawn, Stream};
use super::{environment, refusal};
use crate::clock;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use tidegate_core::time::{Moment, Span};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, watch};

/// What the worker says about a running process.
pub(super) enum Told {
    Extend(Moment),
    Stop,
}

pub(super) struct Process {
    id: Id,
    child: Child,
    group: Arc<Group>,
    leader: Leader,
    deadline: Moment,
    grace: Span,
    told: mpsc::UnboundedReceiver<Told>,
}

impl Process {
    /// Starts it as the leader of a group of its own. The error is a sentence.
    pub(super) fn start(order: &Spawn, told: mpsc::UnboundedReceiver<Told>) -> Result<Process, String> {
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
        // Listening begins before there is anything to hear.
        let child_ends = signal(SignalKind::child()).map_err(|error| refusal::explain(order, &error))?;
        let child = command.spawn().map_err(|error| refusal::explain(order, &error))?;
        let pid = Pid::from_child(&child);
        Ok(Process {
            id: order.id,
            child,
            group: Arc::new(Group::new(pid)),
            leader: Leader { pid, child_ends },
            deadline: order.deadline,
            grace: order.grace,
            told,
        })
    }

    pub(super) fn group(&self) -> Arc<Group> {
        Arc::clone(&self.group)
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
        let mut stopped = false;
        loop {
            tokio::select! {
                // An end that came first counts as its own.
                biased;
                () = self.leader.end() => break,
                Some(told) = self.told.recv() => match told {
                    Told::Extend(deadline) if !stopped => due = deadline,
                    Told::Stop if !stopped => {
                        stopped = true;
                        due = clock::now() + self.grace;
                        self.group.terminate();
                    }
                    Told::Extend(_) | Told::Stop => {}
                },
                () = clock::sleep_until(due) => {
                    if stopped {
                        self.group.kill();
                        due = Moment::MAX;
                    } else {
                        stopped = true;
                        due = due + self.grace;
                        self.group.terminate();
                    }
                }
            }
        }
        // The leader may have left others of its group behind.
        self.group.kill();
        let status = self.child.wait();
        self.group.set_waited_for();
        let (code, signal) = status.map_or((None, None), |status| (status.code(), status.signal()));
        Exit { code, signal, stopped }
    }
}

struct Leader {
    pid: Pid,
    /// SIGCHLD: some child has ended, perhaps this one, perhaps another.
    child_ends: Signal,
}

impl Leader {
    /// Returns when it has ended but has not been waited for, so that its number still stands for its group.
    /// May be dropped and called again.
    async fn end(&mut self) {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        while let Ok(None) = waitid(WaitId::Pid(self.pid), look) {
            self.child_ends.recv().await;
        }
    }
}

async fn forward(output: Output, pipe: Option<OwnedFd>) {
    if let Some(pipe) = pipe {
        output.forward(pipe).await;
    }
}
