//! The worker: runs attempts.
