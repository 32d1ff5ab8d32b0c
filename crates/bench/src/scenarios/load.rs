//! `load`: a flow of many steps, from the text of its file to what the core takes.

use super::Scale;
use crate::definitions::{chain_text, read};
use crate::ratio::Ratio;
use crate::report::{Bar, Finding};
use anyhow::{Result, ensure};
use std::time::Instant;

/// Milliseconds.
const BOUND: f64 = 50.0;
const TURNS: usize = 15;

pub fn run(scale: &Scale) -> Result<Vec<Finding>> {
    let steps = scale.size(1_000) as u32;
    let text = chain_text("long", "nothing", steps);
    let mut times = Vec::new();
    for _ in 0..TURNS {
        let begin = Instant::now();
        let flow = read(text.clone());
        times.push(begin.elapsed().as_secs_f64() * 1_000.0);
        ensure!(flow.steps.len() == steps as usize, "{} steps were read", flow.steps.len());
    }
    let ratio = Ratio::to_bound(&times, BOUND);
    Ok(vec![Finding::new(format!("load/{steps}"), "ms", ratio, "50 ms").bar(Bar::AtMost(1.0))])
}
