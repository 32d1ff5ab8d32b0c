//! The view and its picture, without a terminal.
