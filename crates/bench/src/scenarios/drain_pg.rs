//! `drain-pg`: no-op jobs on PostgreSQL, enqueued first, then drained until the history holds them all: next to the
//! same commits issued by a loop, to plain SQL, and to a peer if it was built.

use super::Scale;
use super::drain_embedded::{lives, setting};
use crate::database::Database;
use crate::floors::{Halves, best_group, ceiling, postgres};
use crate::ratio::Ratio;
use crate::report::{Bar, Finding};
use crate::subject::Subject;
use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use tidegate_store::{PostgresStore, Reads};

/// Of the ceiling, and more than a peer.
const BAR: f64 = 0.5;
const AHEAD: f64 = 1.0;
/// How long the tables may take to follow.
const PATIENCE: Duration = Duration::from_secs(60);

pub async fn run(scale: &Scale) -> Result<Vec<Finding>> {
    let server = Database::server()?;
    let jobs = scale.size(200_000);
    let sample = jobs / 4;
    let floor = async |group| Ok(postgres::lives(&server, sample, group).await?.drain_rate(sample));
    let group = best_group(floor).await?;
    let batch = best_group(async |batch| Ok(plain_commits(sample, batch).await?.drain_rate(sample))).await?;
    let (mut ceilings, mut floors, mut peers, mut enqueues) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for turn in 0..scale.times(BAR) {
        let ours_first = if turn % 2 == 0 { Some(tidegate(jobs).await?) } else { None };
        let plain = plain_commits(jobs, batch).await?;
        let floor = postgres::lives(&server, jobs, group).await?;
        let peer = scale.graphile.as_deref().map(|program| peer(program, &server, jobs)).transpose()?;
        let ours = match ours_first {
            Some(ours) => ours,
            None => tidegate(jobs).await?,
        };
        ceilings.push((ours.drain_rate(jobs), plain.drain_rate(jobs)));
        floors.push((ours.drain_rate(jobs), floor.drain_rate(jobs)));
        peers.extend(peer.map(|peer| (ours.drain_rate(jobs), peer.drain_rate(jobs))));
        enqueues.extend(peer.map(|peer| (ours.enqueue_rate(jobs), peer.enqueue_rate(jobs))));
    }
    let against = format!("the same commits by a loop, {batch} jobs each");
    let floor = format!("plain SQL, two updates a job, groups of {group}");
    let mut findings = vec![
        Finding::new("drain-pg", "jobs/s", Ratio::of(&ceilings), against).bar(Bar::AtLeast(BAR)),
        Finding::new("drain-pg/floor", "jobs/s", Ratio::of(&floors), floor),
    ];
    if peers.is_empty() {
        eprintln!("no peer was built (--peers): drain-pg is not compared with one");
    } else {
        let peer = "graphile_worker, local queue 1,000";
        findings
            .push(Finding::new("drain-pg/peer", "jobs/s", Ratio::of(&peers), peer).bar(Bar::AtLeast(AHEAD)));
        findings.push(Finding::new("enqueue-pg/peer", "jobs/s", Ratio::of(&enqueues), peer));
    }
    Ok(findings)
}

async fn tidegate(jobs: u64) -> Result<Halves> {
    let database = Database::fresh().await?;
    let halves = lives(jobs, Subject::open(database.url(), setting()).await?).await?;
    database.drop().await?;
    Ok(halves)
}

/// Until the tables hold everything, as for an engine.
async fn plain_commits(jobs: u64, batch: usize) -> Result<Halves> {
    let database = Database::fresh().await?;
    let url = database.url().to_owned();
    let halves = tokio::task::spawn_blocking(move || {
        let script = ceiling::script(jobs, batch)?;
        let mut store = PostgresStore::open(&url)?;
        let last = script.drain.last().map_or(0, |entry| entry.sequence);
        let before = ceiling::play(&mut store, &script)?;
        let begin = Instant::now();
        let mut tables = PostgresStore::open_reader(&url)?;
        ensure!(tables.reach(last, PATIENCE)?, "the tables do not follow");
        anyhow::Ok(Halves { drain: before.drain + begin.elapsed(), ..before })
    });
    let halves = halves.await??;
    database.drop().await?;
    Ok(halves)
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
