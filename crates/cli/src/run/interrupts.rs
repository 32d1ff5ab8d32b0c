//! Ctrl-C, and its cousin for programs, SIGTERM.

use crate::failure::Failure;
use tokio::signal::unix::{Signal, SignalKind, signal};

pub struct Interrupts {
    keys: Signal,
    terminate: Signal,
}

impl Interrupts {
    /// From now on they no longer end this process.
    pub fn listen() -> Result<Interrupts, Failure> {
        let listen = |kind| {
            signal(kind)
                .map_err(|error| Failure::new("signals", format!("cannot listen to signals: {error}")))
        };
        Ok(Interrupts { keys: listen(SignalKind::interrupt())?, terminate: listen(SignalKind::terminate())? })
    }

    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.keys.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
