//! `reload`: a start with many open tasks, next to a plain reading of their rows; and what they cost at rest.

use super::Scale;
use crate::floors::{ceiling, sqlite};
use crate::ratio::{Ratio, alternate};
use crate::report::{Bar, Finding};
use crate::subject::{Setting, Subject};
use anyhow::{Result, ensure};
use rustix::time::{ClockId, clock_gettime};
use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidegate_store::SqliteStore;

const BAR: f64 = 3.0;
/// How long to watch an engine that has nothing to do.
const REST: Duration = Duration::from_secs(3);

pub async fn run(scale: &Scale) -> Result<Vec<Finding>> {
    let tasks = scale.size(1_000_000);
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("store.db");
    ceiling::fill(&mut SqliteStore::open(&path)?, tasks)?;
    let idle = RefCell::new(Vec::new());
    let ours = async || {
        let (time, share) = start(folder.path()).await?;
        idle.borrow_mut().push(share);
        Ok(time)
    };
    let plain = async || {
        let (time, rows) = sqlite::select_open(&path)?;
        ensure!(rows == tasks, "{rows} rows are open");
        Ok(time)
    };
    let ratio = alternate(scale.times(BAR), ours, plain).await?;
    let idle = Ratio::to_bound(&idle.into_inner(), 1.0);
    Ok(vec![
        Finding::new(format!("reload/{tasks}"), "s", ratio, "a plain SELECT of the rows")
            .bar(Bar::AtMost(BAR)),
        Finding::new(format!("reload/{tasks}/idle"), "% of a core", idle, "1 %").bar(Bar::AtMost(1.0)),
    ])
}

/// Seconds until an engine over the store answers, and then the percentage of a core that it takes to do nothing.
async fn start(folder: &Path) -> Result<(f64, f64)> {
    let begin = Instant::now();
    let subject = Arc::new(Subject::embedded(folder, Setting::default()).await?);
    let time = begin.elapsed().as_secs_f64();
    let before = computed();
    tokio::time::sleep(REST).await;
    let share = (computed() - before).as_secs_f64() / REST.as_secs_f64() * 100.0;
    subject.shut_down().await?;
    Ok((time, share))
}

/// What this process has computed so far.
fn computed() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}
