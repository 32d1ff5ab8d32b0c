//! `bench-peer-graphile URL JOBS`: no-op jobs through graphile_worker, enqueued first, then drained.
//!
//! Set up as its manual says for throughput: a local queue, and completions in batches. Prints the seconds of the two
//! halves. The clock of the second stops when its table of jobs is empty; it keeps no history.

use anyhow::{Context, Result, ensure};
use graphile_worker::{
    IntoTaskHandlerResult, JobSpec, LocalQueueConfig, TaskHandler, Worker, WorkerContext, WorkerOptions,
    WorkerUtils,
};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio_postgres::{Client, NoTls};

const SCHEMA: &str = "bench_peer_graphile";
const LOCAL_QUEUE: usize = 1_000;
/// With which it was fastest, of 10 to 1,000.
const CONCURRENCY: usize = 500;
const COMPLETION_DELAY: Duration = Duration::from_millis(5);
/// Jobs of one submission, as many as the other side has waiting for their acknowledgement.
const BATCH: u64 = 1_000;

static EXECUTED: AtomicU64 = AtomicU64::new(0);

#[derive(Clone, Serialize, Deserialize)]
struct Noop {
    number: u64,
}

impl TaskHandler for Noop {
    const IDENTIFIER: &'static str = "noop";

    async fn run(self, _: WorkerContext) -> impl IntoTaskHandlerResult {
        EXECUTED.fetch_add(1, Ordering::Relaxed);
        Ok::<(), String>(())
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let mut words = std::env::args().skip(1);
    let url = words.next().context("the address of a database is missing")?;
    let jobs: u64 = words.next().context("a number of jobs is missing")?.parse()?;
    let (client, connection) = tokio_postgres::connect(&url, NoTls).await?;
    tokio::spawn(connection);
    client.batch_execute(&format!("drop schema if exists {SCHEMA} cascade")).await?;
    let worker = WorkerOptions::default()
        .database_url(&url)
        .schema(SCHEMA)
        .concurrency(CONCURRENCY)
        .define_job::<Noop>()
        .local_queue(LocalQueueConfig::default().with_size(LOCAL_QUEUE))
        .complete_job_batch_delay(COMPLETION_DELAY)
        .init()
        .await?;
    let enqueue = enqueue(&worker.create_utils(), jobs).await?;
    // Its plans depend on what the planner knows of the table; without this it takes three times as long.
    client.batch_execute("vacuum analyze").await?;
    let drain = drain(worker, &client, jobs).await?;
    println!("{} {}", enqueue.as_secs_f64(), drain.as_secs_f64());
    Ok(())
}

async fn enqueue(utils: &WorkerUtils, jobs: u64) -> Result<Duration> {
    let spec = JobSpec::default();
    let begin = Instant::now();
    for from in (0..jobs).step_by(BATCH as usize) {
        let batch: Vec<_> = (from..jobs.min(from + BATCH)).map(|number| (Noop { number }, &spec)).collect();
        utils.add_jobs(&batch).await?;
    }
    Ok(begin.elapsed())
}

async fn drain(worker: Worker, client: &Client, jobs: u64) -> Result<Duration> {
    let is_empty = format!("select not exists (select 1 from {SCHEMA}._private_jobs)");
    let is_empty = client.prepare(&is_empty).await?;
    let begin = Instant::now();
    let working = tokio::spawn(async move { worker.run().await });
    loop {
        // While there is work its table is left alone.
        if EXECUTED.load(Ordering::Relaxed) >= jobs && client.query_one(&is_empty, &[]).await?.get(0) {
            return Ok(begin.elapsed());
        }
        ensure!(!working.is_finished(), "the worker ended before its jobs did");
        tokio::time::sleep(Duration::from_micros(500)).await;
    }
}
