//! `hop`: from the end of a step to the start of the next, in a chain of steps that do nothing.

use super::Scale;
use crate::definitions::{action, chain, chain_of_processes};
use crate::jobs::{Jobs, Kind};
use crate::ratio::{Ratio, median};
use crate::report::{Bar, Finding};
use crate::subject::{Place, Setting, Staff, Subject};
use anyhow::{Result, ensure};
use std::sync::Arc;
use std::time::Instant;
use tidegate_core::protocol::Payload;
use tidegate_observer::{Fact, Mode, Recorder, read};
use tidegate_worker::Functions;

const STEPS: u32 = 100;
/// Milliseconds.
const FUNCTION_BOUND: f64 = 1.0;
const POSTGRES_BOUND: f64 = 5.0;
const PROCESS_BOUND: f64 = 3.0;

pub async fn run(scale: &Scale) -> Result<Vec<Finding>> {
    let (mut functions, mut shared, mut processes) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..scale.times(0.0) {
        functions.push(hop_of_functions(Place::Embedded).await?);
        shared.push(hop_of_functions(Place::Postgres).await?);
        processes.push(hop_of_processes().await?);
    }
    let functions = Ratio::to_bound(&functions, FUNCTION_BOUND);
    let shared = Ratio::to_bound(&shared, POSTGRES_BOUND);
    let processes = Ratio::to_bound(&processes, PROCESS_BOUND);
    Ok(vec![
        Finding::new("hop/functions", "ms, p50", functions, "1 ms").bar(Bar::AtMost(1.0)),
        Finding::new("hop-pg/functions", "ms, p50", shared, "5 ms").bar(Bar::AtMost(1.0)),
        Finding::new("hop/processes", "ms, mean, with `true`", processes, "3 ms").bar(Bar::AtMost(1.0)),
    ])
}

/// Milliseconds between two steps, as the steps saw it.
async fn hop_of_functions(place: Place) -> Result<f64> {
    let site = place.site().await?;
    let records = site.records();
    let work = Jobs::new(Some(Recorder::open(&records, Mode::Gathered)?), 1);
    let mut functions = Functions::default();
    work.register(&mut functions, "hop", Kind::default());
    let flows = vec![chain("chain", "hop", STEPS)];
    let setting = Setting { actions: vec![action("hop", None, &[])], flows, ..Setting::default() };
    let subject = Arc::new(site.subject(setting).await?);
    subject.work(&Staff { functions, workers: 1, slots: 8 }).await;
    subject.run("chain", Payload::new("{}")).await?;
    subject.shut_down().await?;
    work.flush();
    let records = read(&records)?;
    site.clear().await?;
    let at = |fact, job| records.iter().find(|record| (record.fact, record.job) == (fact, job));
    let hops: Vec<f64> = (1..u64::from(STEPS))
        .filter_map(|job| Some((at(Fact::Ended, job)?.at, at(Fact::Started, job + 1)?.at)))
        .map(|(end, start)| start.saturating_sub(end) as f64 / 1e6)
        .collect();
    ensure!(hops.len() as u32 == STEPS - 1, "the observer saw {} hops", hops.len());
    Ok(median(&hops))
}

/// Milliseconds a step of processes that do nothing, the processes included.
async fn hop_of_processes() -> Result<f64> {
    let folder = tempfile::tempdir()?;
    let setting = Setting { flows: vec![chain_of_processes("chain", STEPS)], ..Setting::default() };
    let subject = Arc::new(Subject::embedded(folder.path(), setting).await?);
    let begin = Instant::now();
    subject.run("chain", Payload::new("{}")).await?;
    let time = begin.elapsed().as_secs_f64() * 1e3 / f64::from(STEPS);
    subject.shut_down().await?;
    Ok(time)
}
