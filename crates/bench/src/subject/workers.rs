//! Several workers in one process, each with its own slots.

use tidegate::{Hired, hire};
use tidegate_core::ids::Name;
use tidegate_engine::Engine;
use tidegate_worker::{Functions, Settings};

/// A worker that has joined.
pub(super) async fn join(engine: &Engine, name: Name, slots: u32, functions: Functions) -> Hired {
    // The half of an id that holds the time: later starts have higher ones.
    let incarnation = (uuid::Uuid::now_v7().as_u128() >> 64) as u64;
    let mut settings = Settings::new(name, incarnation, None);
    settings.slots.io = slots;
    settings.functions = functions;
    let mut hired = hire(engine, settings);
    // Dropped only if the engine has ended already.
    let _ = (&mut hired.joined).await;
    hired
}

pub(super) async fn leave(hired: Hired) {
    hired.control.shut_down();
    // A worker that panicked has nothing left to hand back.
    let _ = hired.left.await;
}
