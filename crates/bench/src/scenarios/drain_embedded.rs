//! `drain-embedded`: no-op jobs on SQLite, enqueued first, then drained until the history holds them all.

use super::Scale;
use crate::definitions::{action, job};
use crate::floors::{Halves, best_group, ceiling, sqlite};
use crate::jobs::{Jobs, Kind};
use crate::ratio::Ratio;
use crate::report::{Bar, Finding};
use crate::subject::{AT_ONCE, Setting, Staff, Subject};
use anyhow::{Result, ensure};
use std::sync::Arc;
use std::time::Instant;
use tidegate_core::ids::Name;
use tidegate_store::SqliteStore;
use tidegate_worker::Functions;

const BAR: f64 = 0.5;

pub async fn run(scale: &Scale) -> Result<Vec<Finding>> {
    let jobs = scale.size(200_000);
    let sample = jobs / 4;
    let group = best_group(async |group| Ok(floor(sample, group)?.life_rate(sample))).await?;
    let batch = best_group(async |batch| Ok(plain_commits(sample, batch)?.drain_rate(sample))).await?;
    let (mut drains, mut lives, mut ceilings) = (Vec::new(), Vec::new(), Vec::new());
    for turn in 0..scale.times(BAR) {
        let plain = || anyhow::Ok((floor(jobs, group)?, plain_commits(jobs, batch)?));
        let (ours, (floor, ceiling)) = if turn % 2 == 0 {
            (tidegate(jobs).await?, plain()?)
        } else {
            let plain = plain()?;
            (tidegate(jobs).await?, plain)
        };
        drains.push((ours.drain_rate(jobs), floor.life_rate(jobs)));
        lives.push((ours.life_rate(jobs), floor.life_rate(jobs)));
        ceilings.push((ours.drain_rate(jobs), ceiling.drain_rate(jobs)));
    }
    let floor = format!("SQLite floor, groups of {group}");
    let ceiling = format!("the same commits by a loop, {batch} jobs each");
    Ok(vec![
        Finding::new("drain-embedded", "jobs/s", Ratio::of(&ceilings), ceiling).bar(Bar::AtLeast(BAR)),
        Finding::new("drain-embedded/floor", "jobs/s", Ratio::of(&drains), floor.clone())
            .bar(Bar::AtLeast(BAR)),
        Finding::new("drain-embedded/life", "jobs/s", Ratio::of(&lives), floor),
    ])
}

fn floor(jobs: u64, group: usize) -> Result<Halves> {
    let folder = tempfile::tempdir()?;
    sqlite::lives(folder.path(), jobs, group)
}

fn plain_commits(jobs: u64, batch: usize) -> Result<Halves> {
    let folder = tempfile::tempdir()?;
    let script = ceiling::script(jobs, batch)?;
    let mut store = SqliteStore::open(folder.path().join("store.db"))?;
    ceiling::play(&mut store, &script)
}

async fn tidegate(jobs: u64) -> Result<Halves> {
    let folder = tempfile::tempdir()?;
    lives(jobs, Subject::embedded(folder.path(), setting()).await?).await
}

/// What [`lives`] needs to be declared.
pub fn setting() -> Setting {
    Setting { actions: vec![action("noop", None, &[])], ..Setting::default() }
}

/// Lives of no-op jobs without a limit, which nobody writes down: how long Tidegate takes for them.
pub async fn lives(jobs: u64, subject: Subject) -> Result<Halves> {
    let subject = Arc::new(subject);
    let work = Jobs::new(None, 1);
    work.want(jobs);
    let mut functions = Functions::default();
    work.register(&mut functions, "noop", Kind::default());
    let begin = Instant::now();
    let noop = Name::new("noop");
    subject.submit_all(jobs, AT_ONCE, move |number| job(&noop, number), |_, _| {}).await?;
    let enqueue = begin.elapsed();
    let begin = Instant::now();
    subject.work(&Staff { functions, workers: 4, slots: 256 }).await;
    work.all_ended().await;
    subject.history_is_complete().await?;
    let drain = begin.elapsed();
    ensure!(subject.succeeded().await? == jobs, "the history does not hold every job");
    subject.shut_down().await?;
    Ok(Halves { enqueue, drain })
}
