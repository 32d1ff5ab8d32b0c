//! The worker's end of the two pipes to its guardian.

use super::GuardianCommand;
use super::mark::{self, Mark};
use super::wire::{Command, Event};
use std::io;
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::sync::mpsc;

/// Events read ahead of the worker; beyond that the guardian, and then the processes' outputs, wait.
const EVENTS: usize = 256;

/// A running guardian. Dropping this closes its pipe, which ends it and all it has started.
pub(crate) struct Handle {
    /// Unbounded, because the worker must never wait for its guardian: the commands are few and short.
    commands: Option<mpsc::UnboundedSender<Command>>,
    events: mpsc::Receiver<Event>,
    mark: Mark,
}

impl Handle {
    pub(crate) fn start(command: &GuardianCommand) -> io::Result<Handle> {
        let mark = Mark::fresh();
        let mut child = tokio::process::Command::new(&command.program)
            .args(&command.args)
            .env(mark::VARIABLE, mark.as_str())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("the guardian has no pipes"));
        };
        let (commands, outgoing) = mpsc::unbounded_channel();
        let (incoming, events) = mpsc::channel(EVENTS);
        tokio::spawn(write_commands(outgoing, stdin));
        tokio::spawn(read_events(child, stdout, incoming));
        Ok(Handle { commands: Some(commands), events, mark })
    }

    /// If the guardian is gone this does nothing: `next` tells.
    pub(crate) fn tell(&self, command: Command) {
        if let Some(commands) = &self.commands {
            let _ = commands.send(command);
        }
    }

    /// `None` when the guardian is gone. May be dropped and called again.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        self.events.recv().await
    }

    /// What a guardian that is gone did not end itself: it was killed.
    pub(crate) fn kill_what_is_left(&self) {
        self.mark.kill_bearers();
    }

    /// Closes the pipe: the guardian kills everything and ends, which `next` will tell.
    pub(crate) fn hang_up(&mut self) {
        self.commands = None;
    }
}

async fn write_commands(mut commands: mpsc::UnboundedReceiver<Command>, mut stdin: ChildStdin) {
    while let Some(command) = commands.recv().await {
        let Ok(mut line) = serde_json::to_vec(&command) else { continue };
        line.push(b'\n');
        if stdin.write_all(&line).await.is_err() {
            return;
        }
    }
}

async fn read_events(mut child: Child, stdout: ChildStdout, events: mpsc::Sender<Event>) {
    let mut lines = BufReader::new(stdout).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        // Something else than a guardian answers: it is ended below, and the worker hears that it is gone.
        let Ok(event) = serde_json::from_str(&line) else { break };
        if events.send(event).await.is_err() {
            break;
        }
    }
    if !events.is_closed() {
        let _ = child.start_kill();
    }
    let _ = child.wait().await;
}
