//! What Tidegate costs, measured against something in the same run. Test only.
//!
//! - [`subject`]: Tidegate as a scenario sees it; [`jobs`]: jobs that do nothing but write down that they ran;
//!   [`definitions`]: the actions and flows they are jobs of
//! - [`floors`]: the same work by plain programs
//! - [`ratio`]: the two sides in turns, and how sure their ratio is; [`report`]: figures next to their bars
//! - [`scenarios`]: one file a scenario
//! - [`chaos`]: programs that are killed under load, over and over, and what became of their jobs
//!
//! A figure of a scenario with a limit counts only if the observer saw the limit reached and never exceeded.

pub mod chaos;
pub mod database;
pub mod definitions;
pub mod floors;
pub mod jobs;
pub mod ratio;
pub mod report;
pub mod scenarios;
pub mod subject;
