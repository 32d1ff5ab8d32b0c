//! `memory`: how much more a loop over many items needs than one over few.
//!
//! Every size is measured in a process of its own: what a process has used at most never gets less.

use super::Scale;
use crate::definitions::{action, wide_window};
use crate::jobs::{Jobs, Kind};
use crate::ratio::Ratio;
use crate::report::{Bar, Finding};
use crate::subject::{Place, Setting, Staff};
use anyhow::{Context, Result, ensure};
use std::process::{Command, Stdio};
use std::sync::Arc;
use tidegate_core::protocol::Payload;
use tidegate_worker::Functions;

/// The first argument by which this program runs one loop, and tells the one that started it what it needed.
pub const ALONE: &str = "memory";

const WINDOW: u32 = 100;
/// Bytes of what each item is given.
const WIDTH: usize = 1_024;
const FEW: u64 = 1_000;
/// MiB.
const BOUND: f64 = 100.0;
const TURNS: usize = 5;

pub fn run(scale: &Scale) -> Result<Vec<Finding>> {
    let many = scale.size(100_000);
    let mut extra = Vec::new();
    for _ in 0..if scale.quick { 1 } else { TURNS } {
        extra.push(needed_apart(many)? - needed_apart(FEW)?);
    }
    let ratio = Ratio::to_bound(&extra, BOUND);
    let against = format!("{BOUND} MiB more than {FEW} items");
    Ok(vec![Finding::new(format!("memory/{many}"), "MiB", ratio, against).bar(Bar::AtMost(1.0))])
}

fn needed_apart(items: u64) -> Result<f64> {
    let program = std::env::current_exe()?;
    let child = Command::new(program).args([ALONE, &items.to_string()]).stderr(Stdio::inherit()).output()?;
    ensure!(child.status.success(), "a loop over {items} items could not be measured");
    String::from_utf8(child.stdout)?.trim().parse().context("a figure that cannot be read")
}

/// What the process that was started with [`ALONE`] does.
pub fn measure_here(items: &str) -> Result<()> {
    let items = items.parse().context("a number of items")?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(iterate(items))?;
    println!("{}", peak()?);
    Ok(())
}

async fn iterate(items: u64) -> Result<()> {
    let site = Place::Embedded.site().await?;
    let mut functions = Functions::default();
    Jobs::new(None, 1).register(&mut functions, "item", Kind::default());
    let flows = vec![wide_window("loop", "item", WINDOW, WIDTH)];
    let setting = Setting { actions: vec![action("item", None, &[])], flows, ..Setting::default() };
    let subject = Arc::new(site.subject(setting).await?);
    subject.work(&Staff { functions, workers: 4, slots: 256 }).await;
    let list: Vec<u64> = (1..=items).collect();
    subject.run("loop", Payload::new(serde_json::json!({ "list": list }).to_string())).await?;
    subject.shut_down().await?;
    site.clear().await
}

/// The most memory that this process has had, in MiB.
fn peak() -> Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("no peak is told")?;
    let kib = line.trim().trim_end_matches("kB").trim();
    Ok(kib.parse::<f64>()? / 1_024.0)
}
