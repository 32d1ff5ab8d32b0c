//! `limited`, `mixed`, `high`: what a limit costs, next to the same jobs without one, under the observer's eyes.

use super::Scale;
use crate::definitions::{action, job};
use crate::jobs::{Jobs, Kind};
use crate::ratio::alternate;
use crate::report::{Bar, Finding};
use crate::subject::{AT_ONCE, Place, Setting, Staff, commit_time};
use anyhow::{Result, ensure};
use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use tidegate_core::ids::Name;
use tidegate_core::model::Action;
use tidegate_observer::{Case, Claim, Fact, Mode, Recorder, judge, read};
use tidegate_worker::Functions;

/// Jobs of some actions, of which the first may have a limit.
#[derive(Clone, Copy)]
struct Load {
    place: Place,
    jobs: u64,
    actions: u64,
    limit: Option<u32>,
    /// How many of the first action meet at the beginning.
    meet: u32,
    workers: u32,
}

/// Of what the limit and the commits allow, where every grant waits for its commit.
pub const GATED_BAR: f64 = 0.9;

impl Load {
    fn new(place: Place, jobs: u64, limit: Option<u32>) -> Load {
        Load { place, jobs, actions: 1, limit, meet: limit.unwrap_or(0), workers: 4 }
    }
}

pub async fn limited(scale: &Scale) -> Result<Vec<Finding>> {
    let load = |place| Load::new(place, scale.size(100_000), Some(10));
    let embedded = compare("limited", scale, load(Place::Embedded), 0.97).await?;
    Ok(vec![embedded, compare_gated("limited", scale, load(Place::Postgres), 10).await?])
}

pub async fn mixed(scale: &Scale) -> Result<Vec<Finding>> {
    let load = |place| Load { actions: 100, ..Load::new(place, scale.size(100_000), Some(10)) };
    let embedded = compare("mixed", scale, load(Place::Embedded), 0.99).await?;
    Ok(vec![embedded, compare("mixed", scale, load(Place::Postgres), 0.99).await?])
}

pub async fn high(scale: &Scale) -> Result<Vec<Finding>> {
    let load = |place| Load { workers: 8, ..Load::new(place, scale.size(100_000), Some(500)) };
    let embedded = compare("high", scale, load(Place::Embedded), 0.95).await?;
    Ok(vec![embedded, compare_gated("high", scale, load(Place::Postgres), 500).await?])
}

/// Jobs a second of as many jobs without a limit.
pub async fn unlimited(place: Place, jobs: u64) -> Result<f64> {
    Ok(drain(Load::new(place, jobs, None)).await?.0)
}

/// Next to the same jobs without the limit.
async fn compare(name: &str, scale: &Scale, load: Load, bar: f64) -> Result<Finding> {
    let without = async || Ok(drain(Load { limit: None, ..load }).await?.0);
    let against = "the same jobs without the limit";
    next_to(name, scale, load, bar, against, without).await
}

/// Next to what is possible at most.
async fn compare_gated(name: &str, scale: &Scale, load: Load, limit: u32) -> Result<Finding> {
    let without = async || {
        let (ungated, _) = drain(Load { place: Place::Embedded, ..load }).await?;
        let possible = gated_most(limit, ungated).await?;
        Ok(possible.min(drain(Load { limit: None, ..load }).await?.0))
    };
    let against = "the same jobs without the limit, or limit ÷ (commit + round trip) if that is less";
    next_to(name, scale, load, GATED_BAR, against, without).await
}

/// Jobs a second where each unit of a limit pays a commit and a round trip a job. What is reached where nobody waits for
/// commits tells how long the round trip takes.
pub async fn gated_most(limit: u32, ungated: f64) -> Result<f64> {
    let units = f64::from(limit);
    Ok(units / (commit_time(limit as usize).await? + units / ungated))
}

async fn next_to(
    name: &str,
    scale: &Scale,
    load: Load,
    bar: f64,
    against: &str,
    without: impl AsyncFnMut() -> Result<f64>,
) -> Result<Finding> {
    let flaw = RefCell::new(None);
    let with = async || {
        let (rate, found) = drain(load).await?;
        let mut flaw = flaw.borrow_mut();
        *flaw = flaw.take().or(found);
        Ok(rate)
    };
    let ratio = alternate(scale.times(bar), with, without).await?;
    let finding = Finding::new(load.place.name(name), "jobs/s", ratio, against);
    Ok(finding.bar(Bar::AtLeast(bar)).flaw(flaw.into_inner()))
}

/// Jobs a second from the moment they are let go until the history holds them all, and what the observer minds.
async fn drain(load: Load) -> Result<(f64, Option<String>)> {
    let site = load.place.site().await?;
    let records = site.records();
    let work = Jobs::new(Some(Recorder::open(&records, Mode::Gathered)?), 1);
    work.want(load.jobs);
    let names: Vec<Name> = (0..load.actions).map(|number| Name::new(format!("noop-{number}"))).collect();
    let setting = Setting { actions: actions(&names, load), ..Setting::default() };
    let subject = Arc::new(site.subject(setting).await?);
    let (called, told) = (names.clone(), work.clone());
    let make = move |number| job(&called[(number % load.actions) as usize], number);
    subject
        .submit_all(load.jobs, AT_ONCE, make, move |job, order| told.told(Fact::Acknowledged, job, order))
        .await?;
    let functions = functions(&work, &names, load);
    let begin = Instant::now();
    subject.work(&Staff { functions, workers: load.workers, slots: 256 }).await;
    work.all_ended().await;
    subject.history_is_complete().await?;
    let rate = load.jobs as f64 / begin.elapsed().as_secs_f64();
    ensure!(subject.succeeded().await? == load.jobs, "the history does not hold every job");
    subject.shut_down().await?;
    work.flush();
    let flaw = flaw(load, &records)?;
    site.clear().await?;
    Ok((rate, flaw))
}

fn actions(names: &[Name], load: Load) -> Vec<Action> {
    let limit = |at: usize| load.limit.filter(|_| at == 0);
    names.iter().enumerate().map(|(at, name)| action(name.as_str(), limit(at), &[])).collect()
}

/// With and without the limit they do the same.
fn functions(work: &Arc<Jobs>, names: &[Name], load: Load) -> Functions {
    let mut functions = Functions::default();
    for (at, name) in names.iter().enumerate() {
        let is_first = u32::from(at == 0);
        let claim = Claim { limit: is_first, units: is_first };
        let (line, meet) = (at as u16 + 1, load.meet * is_first);
        let kind = Kind { line, claims: [claim, Claim::default()], meet, ..Kind::default() };
        work.register(&mut functions, name.as_str(), kind);
    }
    functions
}

/// The limit was reached and never exceeded, nothing was lost or run twice, and who was accepted first began first.
fn flaw(load: Load, records: &Path) -> Result<Option<String>> {
    let Some(limit) = load.limit else { return Ok(None) };
    let case = Case {
        limits: [(1, limit)].into(),
        must_reach: true,
        lines: [(1, limit)].into(),
        starts: 1,
        ..Case::default()
    };
    let verdict = judge(&case, &read(records)?);
    ensure!(verdict.executions == load.jobs, "the observer saw {} executions", verdict.executions);
    Ok(verdict.violations.first().map(ToString::to_string))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_limit_is_reached_and_held_and_seen_by_the_observer() {
        let load = Load { actions: 2, workers: 2, ..Load::new(Place::Embedded, 200, Some(3)) };
        let (rate, flaw) = drain(load).await.expect("all of them end");
        assert_eq!(flaw, None);
        assert!(rate > 0.0);
    }
}
