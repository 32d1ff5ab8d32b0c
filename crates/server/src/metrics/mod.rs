//! What is measured, as Prometheus reads it.
//!
//! How many series there are depends on what was declared, never on how much of it there is: limits per key or tag are one
//! series a rule. What is counted for all servers is told by the one that leads, and by no other: a sum over servers is right.

mod page;

use crate::app::App;
use crate::problem::Problem;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use page::Page;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use std::fmt;
use tidegate::{Error, Name};
use tidegate_core::Waits;
use tidegate_core::overview::{NameStats, Stats};

/// Of what there is one of.
const NONE: [(&str, &str); 0] = [];

const TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// What is measured: limits, waits, tasks, workers, commits.
#[utoipa::path(
    get, path = "/metrics", tag = "health",
    responses(
        (status = OK, description = "As OpenMetrics.", content_type = "application/openmetrics-text", body = str),
        (status = SERVICE_UNAVAILABLE, description = "The store cannot be read now.", body = Problem),
    )
)]
pub async fn metrics(State(app): State<App>) -> Result<impl IntoResponse, Problem> {
    let measured = Measured {
        // Whoever does not lead has nothing to say about everything.
        stats: app.tide.engine().stats().await.ok(),
        commits: app.tide.engine().commit_times(),
        behind: app.read(|store| store.behind()).await?,
    };
    let mut registry = Registry::default();
    registry.register_collector(Box::new(measured));
    let mut text = String::new();
    encode(&mut text, &registry).map_err(|_| Problem::from(Error::Closed))?;
    Ok(([(header::CONTENT_TYPE, TYPE)], text))
}

/// Everything at one moment.
#[derive(Debug)]
struct Measured {
    stats: Option<Stats>,
    commits: Waits,
    behind: u64,
}

impl Collector for Measured {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut page = Page(encoder);
        page.gauge(
            "tidegate_build_info",
            "Which version this is.",
            [([("version", env!("CARGO_PKG_VERSION"))], 1)],
        )?;
        let leads = u64::from(self.stats.is_some());
        page.gauge("tidegate_leads", "Whether this server leads.", [(NONE, leads)])?;
        let help = "What commits of this server took.";
        page.histogram("tidegate_commit_seconds", help, [(NONE, &self.commits)])?;
        let help = "Commits that the tables do not show yet.";
        page.gauge("tidegate_projector_lag_entries", help, [(NONE, self.behind)])?;
        self.stats.as_ref().map_or(Ok(()), |stats| tell(&mut page, stats))
    }
}

fn tell(page: &mut Page<'_>, stats: &Stats) -> fmt::Result {
    let waiting = stats.waiting.iter().map(|(reason, count)| ([("reason", reason.as_str())], *count));
    page.gauge("tidegate_queue_depth", "What waits, by the kind of limit that it waits for.", waiting)?;
    let oldest = stats.oldest.0 as f64 / 1_000_000.0;
    let help = "How long the longest-waiting head of a line has waited.";
    page.gauge("tidegate_queue_oldest_seconds", help, [(NONE, oldest)])?;
    let units = stats.limits.iter().flat_map(|limit| {
        let of = |state| [("limit", limit.rule.as_str()), ("state", state)];
        let capacity = limit.capacity.map(|capacity| (of("capacity"), capacity));
        capacity.into_iter().chain([(of("used"), limit.used)])
    });
    page.gauge("tidegate_limit_units", "Units of limits, those per key or tag together.", units)?;
    let waiting = stats.limits.iter().map(|limit| ([("limit", limit.rule.as_str())], limit.waiting));
    page.gauge("tidegate_limit_waiting", "What each limit keeps waiting.", waiting)?;
    page.gauge("tidegate_workers", "Workers that are connected.", [(NONE, stats.workers)])?;
    let slots = [
        ([("kind", "process"), ("state", "all")], u64::from(stats.slots.process)),
        ([("kind", "process"), ("state", "busy")], u64::from(stats.busy.process)),
        ([("kind", "io"), ("state", "all")], u64::from(stats.slots.io)),
        ([("kind", "io"), ("state", "busy")], u64::from(stats.busy.io)),
    ];
    page.gauge("tidegate_worker_slots", "Slots of connected workers.", slots)?;
    let for_limits = in_all(stats, |name| &name.limit_waits);
    let for_workers = in_all(stats, |name| &name.worker_waits);
    let waits = [([("kind", "limit")], &for_limits), ([("kind", "worker")], &for_workers)];
    page.histogram("tidegate_wait_seconds", "What starts waited, for limits and for workers.", waits)?;
    page.counter("tidegate_tasks", "Jobs, steps and items that ended.", ends("action", &stats.actions))?;
    page.counter("tidegate_runs", "Runs of flows that ended.", ends("flow", &stats.flows))?;
    let help = "Attempts that were lost with their workers.";
    page.counter("tidegate_lease_expirations", help, [(NONE, stats.lost)])?;
    let help = "What was said under a lease that had passed to somebody else.";
    page.counter("tidegate_fenced_writes", help, [(NONE, stats.fenced)])?;
    let help = "Submissions that were not accepted.";
    page.counter("tidegate_refused_submissions", help, [(NONE, stats.refused)])
}

/// Waits of all actions, or of all of them and the flows, together.
fn in_all(stats: &Stats, of: impl Fn(&NameStats) -> &Waits) -> Waits {
    let mut all = Waits::default();
    stats.actions.iter().chain(&stats.flows).for_each(|name| all.add(of(name)));
    all
}

fn ends<'a>(
    label: &'static str,
    names: &'a [NameStats],
) -> impl Iterator<Item = ([(&'static str, &'a str); 2], u64)> {
    names.iter().flat_map(move |stats| {
        let name = Name::as_str(&stats.name);
        stats.ends.iter().map(move |(state, count)| ([(label, name), ("outcome", state.as_str())], *count))
    })
}
