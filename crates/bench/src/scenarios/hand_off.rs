//! `hand-off`: a pool of one and two actions that take turns with it; how long it stays unused in between.

use super::Scale;
use crate::definitions::{action, job, pool};
use crate::jobs::{Jobs, Kind};
use crate::ratio::{Ratio, median};
use crate::report::{Bar, Finding};
use crate::subject::{Setting, Staff, Subject};
use anyhow::{Result, ensure};
use std::sync::Arc;
use tidegate_core::ids::Name;
use tidegate_observer::{Case, Claim, Fact, Mode, Record, Recorder, judge, read};
use tidegate_worker::Functions;

/// Milliseconds.
const BOUND: f64 = 1.0;
const HOLDERS: [&str; 2] = ["left", "right"];

pub async fn run(scale: &Scale) -> Result<Vec<Finding>> {
    let (mut times, mut flaw) = (Vec::new(), None);
    for _ in 0..scale.times(0.0) {
        let (time, found) = hand_over(scale.size(1_000)).await?;
        times.push(time);
        flaw = flaw.or(found);
    }
    let ratio = Ratio::to_bound(&times, BOUND);
    Ok(vec![Finding::new("hand-off", "ms, p50", ratio, "1 ms").bar(Bar::AtMost(1.0)).flaw(flaw)])
}

/// Milliseconds from the end of one to the start of the next, and what the observer minds.
async fn hand_over(jobs: u64) -> Result<(f64, Option<String>)> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("records");
    let work = Jobs::new(Some(Recorder::open(&path, Mode::Gathered)?), 1);
    work.want(jobs);
    let mut functions = Functions::default();
    for (holder, line) in HOLDERS.into_iter().zip(1..) {
        let claims = [Claim { limit: 1, units: 1 }, Claim::default()];
        work.register(&mut functions, holder, Kind { line, claims, ..Kind::default() });
    }
    let actions = HOLDERS.map(|holder| action(holder, None, &[("one", 1)])).into();
    let setting = Setting { actions, limits: pool("one", 1), ..Setting::default() };
    let subject = Arc::new(Subject::embedded(folder.path(), setting).await?);
    let names = HOLDERS.map(Name::new);
    let told = work.clone();
    let make = move |number| job(&names[(number % 2) as usize], number);
    subject.submit_all(jobs, 1, make, move |job, order| told.told(Fact::Acknowledged, job, order)).await?;
    subject.work(&Staff { functions, workers: 2, slots: 8 }).await;
    work.all_ended().await;
    subject.history_is_complete().await?;
    subject.shut_down().await?;
    work.flush();
    let records = read(&path)?;
    let case = Case {
        limits: [(1, 1)].into(),
        must_reach: true,
        lines: [(1, 0), (2, 0)].into(),
        starts: 1,
        ..Case::default()
    };
    let verdict = judge(&case, &records);
    Ok((unused(&records)?, verdict.violations.first().map(ToString::to_string)))
}

fn unused(records: &[Record]) -> Result<f64> {
    let times = |fact| {
        let mut times: Vec<u64> =
            records.iter().filter(|record| record.fact == fact).map(|record| record.at).collect();
        times.sort_unstable();
        times
    };
    let (starts, ends) = (times(Fact::Started), times(Fact::Ended));
    ensure!(starts.len() > 1, "nothing was handed over");
    let gaps = ends.iter().zip(&starts[1..]).map(|(end, start)| start.saturating_sub(*end) as f64 / 1e6);
    Ok(median(&gaps.collect::<Vec<_>>()))
}
