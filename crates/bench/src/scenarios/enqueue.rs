//! `enqueue`: submissions that are acknowledged when they are durable, one after the other and many at once.

use super::Scale;
use crate::definitions::{action, job};
use crate::floors::sqlite;
use crate::ratio::alternate;
use crate::report::Finding;
use crate::subject::{AT_ONCE, Setting, Subject};
use anyhow::Result;
use std::sync::Arc;
use std::time::Instant;
use tidegate_core::ids::Name;

pub async fn run(scale: &Scale) -> Result<Vec<Finding>> {
    let times = scale.times(0.0);
    let (few, many) = (scale.size(5_000), scale.size(100_000));
    let single = alternate(times, async || submit(few, 1).await, async || floor(few, 1)).await?;
    let batched =
        alternate(times, async || submit(many, AT_ONCE).await, async || floor(many, AT_ONCE)).await?;
    Ok(vec![
        Finding::new("enqueue/single", "jobs/s", single, "SQLite floor, a row a commit"),
        Finding::new("enqueue/batched", "jobs/s", batched, "SQLite floor, 1,000 rows a commit"),
    ])
}

fn floor(jobs: u64, group: usize) -> Result<f64> {
    let folder = tempfile::tempdir()?;
    Ok(sqlite::lives(folder.path(), jobs, group)?.enqueue_rate(jobs))
}

async fn submit(jobs: u64, at_once: usize) -> Result<f64> {
    let folder = tempfile::tempdir()?;
    let setting = Setting { actions: vec![action("noop", None, &[])], ..Setting::default() };
    let subject = Arc::new(Subject::embedded(folder.path(), setting).await?);
    let noop = Name::new("noop");
    let begin = Instant::now();
    subject.submit_all(jobs, at_once, move |number| job(&noop, number), |_, _| {}).await?;
    let rate = jobs as f64 / begin.elapsed().as_secs_f64();
    subject.shut_down().await?;
    Ok(rate)
}
