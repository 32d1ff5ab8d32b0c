//! `window`: a loop over many items that do nothing, next to as many jobs.

use super::{Scale, limited};
use crate::definitions::{action, window};
use crate::jobs::{Jobs, Kind};
use crate::ratio::alternate;
use crate::report::{Bar, Finding};
use crate::subject::{Place, Setting, Staff};
use anyhow::{Result, ensure};
use std::cell::RefCell;
use std::sync::Arc;
use std::time::Instant;
use tidegate_core::protocol::Payload;
use tidegate_observer::{Case, Claim, Mode, Recorder, judge, read};
use tidegate_worker::Functions;

const WINDOW: u32 = 100;
const BAR: f64 = 0.8;

pub async fn run(scale: &Scale) -> Result<Vec<Finding>> {
    let items = scale.size(100_000);
    let drained = async || limited::unlimited(Place::Embedded, items).await;
    let embedded = compare(Place::Embedded, scale, BAR, "as many jobs, drained", drained).await?;
    let possible = async || {
        let (ungated, _) = iterate(Place::Embedded, items).await?;
        let possible = limited::gated_most(WINDOW, ungated).await?;
        Ok(possible.min(limited::unlimited(Place::Postgres, items).await?))
    };
    let against = "as many jobs, drained, or window ÷ (commit + round trip) if that is less";
    Ok(vec![embedded, compare(Place::Postgres, scale, limited::GATED_BAR, against, possible).await?])
}

async fn compare(
    place: Place,
    scale: &Scale,
    bar: f64,
    against: &str,
    other: impl AsyncFnMut() -> Result<f64>,
) -> Result<Finding> {
    let flaw = RefCell::new(None);
    let ours = async || {
        let (rate, found) = iterate(place, scale.size(100_000)).await?;
        let mut flaw = flaw.borrow_mut();
        *flaw = flaw.take().or(found);
        Ok(rate)
    };
    let ratio = alternate(scale.times(bar), ours, other).await?;
    let finding = Finding::new(place.name("window"), "items/s", ratio, against);
    Ok(finding.bar(Bar::AtLeast(bar)).flaw(flaw.into_inner()))
}

/// Items a second, from the submission until the history holds them all, and what the observer minds.
async fn iterate(place: Place, items: u64) -> Result<(f64, Option<String>)> {
    let site = place.site().await?;
    let path = site.records();
    let work = Jobs::new(Some(Recorder::open(&path, Mode::Gathered)?), 1);
    let mut functions = Functions::default();
    let claims = [Claim { limit: 1, units: 1 }, Claim::default()];
    work.register(&mut functions, "item", Kind { claims, meet: WINDOW, ..Kind::default() });
    let flows = vec![window("loop", "item", WINDOW)];
    let setting = Setting { actions: vec![action("item", None, &[])], flows, ..Setting::default() };
    let subject = Arc::new(site.subject(setting).await?);
    subject.work(&Staff { functions, workers: 4, slots: 256 }).await;
    let list: Vec<u64> = (1..=items).collect();
    let inputs = serde_json::json!({ "list": list }).to_string();
    let begin = Instant::now();
    subject.run("loop", Payload::new(inputs)).await?;
    let rate = items as f64 / begin.elapsed().as_secs_f64();
    subject.shut_down().await?;
    work.flush();
    let case = Case { limits: [(1, WINDOW)].into(), must_reach: true, starts: 1, ..Case::default() };
    let verdict = judge(&case, &read(&path)?);
    ensure!(verdict.executions == items, "the observer saw {} items", verdict.executions);
    site.clear().await?;
    Ok((rate, verdict.violations.first().map(ToString::to_string)))
}
