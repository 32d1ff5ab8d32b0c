//! The simulator, its oracle and its scenarios. Test only.
//!
//! - [`random`]: numbers that depend on a seed and on nothing else.
//! - [`twin`]: admission once more, slow and plain, and random commands that both versions must answer alike.
//! - [`world`]: servers, workers, clients, a network and a store under one virtual clock, and what goes wrong.
//! - [`bench`]: what the core costs by itself.
//! - [`oracle`]: the judge, who sees only what workers physically did and what callers were told.

pub mod bench;
pub mod campaign;
pub mod oracle;
pub mod random;
pub mod twin;
pub mod world;
