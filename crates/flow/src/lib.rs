//! The language people write flows in: YAML files become [`tidegate_core::model`], templates become values.
//!
//! Pure: no files, no clock, no async. Every error of a file is reported at once, with its place.
//!
//! - [`parse`], [`parse_many`], [`parse_with`], [`parse_files`] read files and say everything that is wrong with them;
//! - [`Diagnostics`] holds what is wrong, and draws it;
//! - [`grammar`] is the table of everything that can be written, and where;
//! - [`schema`] is the same for editors;
//! - [`submit`] checks the inputs of a new run, and renders its tags and key;
//! - [`evaluate`] answers the questions the engine asks while a run makes progress;
//! - [`chain`] is what a worker is handed for `do` and `repeat`, and renders as it goes.
//!
//! ```
//! let errors = tidegate_flow::parse("demo.yaml", "flow: demo\nsteps:\n  hello: { rnu: [echo, hello] }\n").unwrap_err();
//! assert!(errors.to_string().starts_with("demo.yaml:3:3: step `hello` does nothing"));
//! assert!(errors.render(false).contains("help: did you mean `run`?"));
//! ```

pub mod chain;
mod compile;
mod diagnostics;
mod duration;
pub mod evaluate;
pub mod grammar;
mod problem;
mod schema;
mod size;
mod source;
pub mod submit;
mod template;
mod yaml;

pub use compile::{Document, Elsewhere, File, parse, parse_files, parse_many, parse_with};
pub use diagnostics::{Diagnostic, Diagnostics};
pub use duration::parse_duration;
pub use problem::Problem;
pub use schema::schema;
pub use source::Span;
pub use yaml::MAX_BYTES;
