//! Reads one output of a process and tells the worker line by line.
//!
//! A worker that reads slowly slows the process down, as any reader of a pipe would. It never holds up the
//! deadline: that is watched elsewhere.

use super::lines::{Lines, Piece};
use super::wire::{Event, Id, Stream};
use crate::clock;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::{mpsc, watch};

/// What a pipe can hold at most. More than this cannot have been written before its writer's end.
const LARGEST_PIPE: usize = 1024 * 1024;

pub(super) struct Output {
    pub(super) id: Id,
    pub(super) stream: Stream,
    pub(super) events: mpsc::Sender<Event>,
    /// Becomes true when the attempt's processes have ended.
    pub(super) over: watch::Receiver<bool>,
}

impl Output {
    /// Returns at the end of the output, or when the attempt is over and what it left in the pipe has been read:
    /// somebody who could not be ended with it may keep the pipe open for ever.
    pub(super) async fn forward(mut self, pipe: OwnedFd) {
        let Ok(pipe) = Receiver::from_owned_fd(pipe) else { return };
        let mut lines = Lines::default();
        let mut chunk = vec![0; 16 * 1024];
        while !self.is_over(&pipe).await {
            match pipe.try_read(&mut chunk) {
                Ok(0) => break,
                Ok(count) => self.tell(lines.push(&chunk[..count])).await,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => break,
            }
        }
        let mut left = LARGEST_PIPE;
        // Read directly: the runtime may not have noticed yet that there is something.
        while let Ok(count @ 1..) = rustix::io::read(&pipe, &mut chunk)
            && left > 0
        {
            self.tell(lines.push(&chunk[..count])).await;
            left = left.saturating_sub(count);
        }
        self.tell(lines.finish().into_iter().collect()).await;
    }

    async fn is_over(&mut self, pipe: &Receiver) -> bool {
        tokio::select! {
            ready = pipe.readable() => ready.is_err(),
            _ = self.over.wait_for(|over| *over) => true,
        }
    }

    async fn tell(&self, pieces: Vec<Piece>) {
        let (id, stream, at) = (self.id, self.stream, clock::wall());
        for Piece { text, newline } in pieces {
            // Nobody listens only when the worker is gone, and then everything ends.
            let _ = self.events.send(Event::Line { id, at, stream, text, newline }).await;
        }
    }
}
