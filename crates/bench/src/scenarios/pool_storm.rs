//! `pool-storm`: one run whose steps all want the same small pool at once, next to a bare semaphore.

use super::Scale;
use crate::definitions::{action, pool, storm};
use crate::jobs::{Jobs, Kind};
use crate::ratio::alternate;
use crate::report::{Bar, Finding};
use crate::subject::{Setting, Staff, Subject};
use anyhow::{Result, ensure};
use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidegate_core::protocol::Payload;
use tidegate_observer::{Case, Claim, Mode, Recorder, judge, read};
use tidegate_worker::Functions;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

const POOL: u32 = 4;
const STEP: Duration = Duration::from_millis(20);
const BAR: f64 = 1.05;

pub async fn run(scale: &Scale) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for steps in [200, 10_000].map(|steps| scale.size(steps) as u32) {
        let flaw = RefCell::new(None);
        let ours = async || {
            let (time, found) = under_tidegate(steps).await?;
            let mut flaw = flaw.borrow_mut();
            *flaw = flaw.take().or(found);
            Ok(time)
        };
        let ratio = alternate(scale.times(BAR), ours, async || under_semaphore(steps).await).await?;
        let finding = Finding::new(format!("pool-storm/{steps}"), "s", ratio, "a tokio semaphore of 4");
        findings.push(finding.bar(Bar::AtMost(BAR)).flaw(flaw.into_inner()));
    }
    Ok(findings)
}

/// Seconds, and what the observer minds. A step that fails fails the run.
async fn under_tidegate(steps: u32) -> Result<(f64, Option<String>)> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("records");
    let work = Jobs::new(Some(Recorder::open(&path, Mode::Gathered)?), 1);
    let mut functions = Functions::default();
    let claims = [Claim { limit: 1, units: 1 }, Claim::default()];
    work.register(&mut functions, "step", Kind { claims, takes: STEP, ..Kind::default() });
    let setting = Setting {
        actions: vec![action("step", None, &[("four", 1)])],
        flows: vec![storm("storm", "step", steps)],
        limits: pool("four", POOL),
        ..Setting::default()
    };
    let subject = Arc::new(Subject::embedded(folder.path(), setting).await?);
    subject.work(&Staff { functions, workers: 1, slots: 256 }).await;
    let begin = Instant::now();
    subject.run("storm", Payload::new("{}")).await?;
    let time = begin.elapsed().as_secs_f64();
    subject.shut_down().await?;
    work.flush();
    let case = Case { limits: [(1, POOL)].into(), must_reach: true, starts: 1, ..Case::default() };
    let verdict = judge(&case, &read(&path)?);
    ensure!(verdict.executions == u64::from(steps), "the observer saw {} steps", verdict.executions);
    Ok((time, verdict.violations.first().map(ToString::to_string)))
}

async fn under_semaphore(steps: u32) -> Result<f64> {
    let semaphore = Arc::new(Semaphore::new(POOL as usize));
    let begin = Instant::now();
    let mut running = JoinSet::new();
    for _ in 0..steps {
        let semaphore = semaphore.clone();
        running.spawn(async move {
            let _held = semaphore.acquire_owned().await;
            tokio::time::sleep(STEP).await;
        });
    }
    running.join_all().await;
    Ok(begin.elapsed().as_secs_f64())
}
