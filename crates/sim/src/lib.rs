//! The simulator, its oracle and its scenarios. Test only.
//!
//! - [`random`]: numbers that depend on a seed and on nothing else.
//! - [`twin`]: admission once more, slow and plain, and random commands that both versions must answer alike.

pub mod random;
pub mod twin;
