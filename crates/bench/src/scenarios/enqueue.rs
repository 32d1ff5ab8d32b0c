//! `enqueue`: submissions that are acknowledged when they are durable, one after the other and many at once.

use super::Scale;
use crate::database::Database;
use crate::definitions::{action, job};
use crate::floors::{postgres, sqlite};
use crate::ratio::alternate;
use crate::report::Finding;
use crate::subject::{AT_ONCE, Place, Setting};
use anyhow::Result;
use std::sync::Arc;
use std::time::Instant;
use tidegate_core::ids::Name;

pub async fn run(scale: &Scale) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for (place, floor) in [(Place::Embedded, "SQLite floor"), (Place::Postgres, "PostgreSQL floor")] {
        for (way, jobs, at_once) in [("single", 5_000, 1), ("batched", 100_000, AT_ONCE)] {
            let jobs = scale.size(jobs);
            let ours = async || submit(place, jobs, at_once).await;
            let plain = async || rows(place, jobs, at_once).await;
            let ratio = alternate(scale.times(0.0), ours, plain).await?;
            let name = format!("{}/{way}", place.name("enqueue"));
            findings.push(Finding::new(name, "jobs/s", ratio, format!("{floor}, {at_once} a commit")));
        }
    }
    Ok(findings)
}

/// Rows a second that are inserted by nobody who decides anything.
async fn rows(place: Place, jobs: u64, group: usize) -> Result<f64> {
    let halves = match place {
        Place::Embedded => sqlite::lives(tempfile::tempdir()?.path(), jobs, group)?,
        Place::Postgres => postgres::lives(&Database::server()?, jobs, group).await?,
    };
    Ok(halves.enqueue_rate(jobs))
}

async fn submit(place: Place, jobs: u64, at_once: usize) -> Result<f64> {
    let site = place.site().await?;
    let setting = Setting { actions: vec![action("noop", None, &[])], ..Setting::default() };
    let subject = Arc::new(site.subject(setting).await?);
    let noop = Name::new("noop");
    let begin = Instant::now();
    subject.submit_all(jobs, at_once, move |number| job(&noop, number), |_, _| {}).await?;
    let rate = jobs as f64 / begin.elapsed().as_secs_f64();
    subject.shut_down().await?;
    site.clear().await?;
    Ok(rate)
}
