//! The engine: writer, leadership, projector.
