//! `drain-pg`: no-op jobs on PostgreSQL, enqueued first, then drained: peers and plain SQL, side by side.

use super::Scale;
use crate::floors::{GROUPS, Halves, postgres};
use crate::ratio::Ratio;
use crate::report::Finding;
use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// The database to measure with.
pub const DATABASE: &str = "TIDEGATE_TEST_POSTGRES";

pub async fn run(scale: &Scale) -> Result<Vec<Finding>> {
    let Some(url) = std::env::var(DATABASE).ok() else {
        eprintln!("drain-pg was NOT MEASURED: {DATABASE} names no database");
        return Ok(Vec::new());
    };
    let Some(graphile) = &scale.graphile else {
        eprintln!("drain-pg was NOT MEASURED: no peer was built (--peers)");
        return Ok(Vec::new());
    };
    let jobs = scale.size(200_000);
    let group = best_group(&url, jobs / 4).await?;
    let (mut drains, mut enqueues) = (Vec::new(), Vec::new());
    for turn in 0..scale.times(0.0) {
        let (peer, floor) = if turn % 2 == 0 {
            (peer(graphile, &url, jobs)?, postgres::lives(&url, jobs, group).await?)
        } else {
            let floor = postgres::lives(&url, jobs, group).await?;
            (peer(graphile, &url, jobs)?, floor)
        };
        drains.push((peer.drain_rate(jobs), floor.drain_rate(jobs)));
        enqueues.push((peer.enqueue_rate(jobs), floor.enqueue_rate(jobs)));
    }
    let (drain, enqueue) = (Ratio::of(&drains), Ratio::of(&enqueues));
    let floor = format!("PostgreSQL floor, two updates a job, groups of {group}");
    let insert = format!("PostgreSQL floor, unnest of {group} rows");
    Ok(vec![
        Finding::new("drain-pg/graphile_worker", "jobs/s", drain, floor),
        Finding::new("enqueue-pg/graphile_worker", "jobs/s", enqueue, insert),
    ])
}

async fn best_group(url: &str, jobs: u64) -> Result<usize> {
    let mut best = (GROUPS[0], 0.0);
    for group in GROUPS {
        let rate = postgres::lives(url, jobs, group).await?.drain_rate(jobs);
        if rate > best.1 {
            best = (group, rate);
        }
    }
    Ok(best.0)
}

/// Each run is a process of its own over tables of its own.
fn peer(program: &Path, url: &str, jobs: u64) -> Result<Halves> {
    let output = Command::new(program).args([url, &jobs.to_string()]).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{} ended with {}: {said}", program.display(), output.status);
    let text = String::from_utf8(output.stdout)?;
    let seconds: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [enqueue, drain] = seconds[..] else {
        return Err(anyhow::anyhow!(text)).context("two numbers are missing");
    };
    Ok(Halves { enqueue: Duration::from_secs_f64(enqueue), drain: Duration::from_secs_f64(drain) })
}
