//! The flow language: parse, compile, expressions.
