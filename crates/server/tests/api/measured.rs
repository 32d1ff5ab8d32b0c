//! What is measured, and by whom it is told.

use super::Api;
use axum::http::{Method, StatusCode};
use serde_json::{Value as Json, json};
use tidegate_server::Access;

#[tokio::test]
async fn what_is_measured_is_told_by_whoever_leads() {
    let api = Api::start(Access::Loopback).await;
    let id = api.submit(json!({ "name": "greet" })).await;
    api.get(&format!("/api/v1/runs/{id}?wait=30s")).await;
    let waits = api.submit(json!({ "name": "nobody.knows" })).await;
    let (status, Json::String(text)) = api.get("/metrics").await else { panic!("it is no JSON") };
    assert_eq!(status, StatusCode::OK, "{text}");
    for line in [
        "tidegate_leads 1",
        "tidegate_queue_depth{reason=\"workers\"} 1",
        "tidegate_limit_units{limit=\"pool:database\",state=\"capacity\"} 1",
        "tidegate_workers 1",
        "tidegate_tasks_total{action=\"greet.one\",outcome=\"succeeded\"} 1",
        "tidegate_runs_total{flow=\"greet\",outcome=\"succeeded\"} 1",
        "tidegate_wait_seconds_count{kind=\"limit\"} 2",
        "tidegate_wait_seconds_count{kind=\"worker\"} 1",
        "tidegate_wait_seconds_bucket{le=\"+Inf\",kind=\"worker\"} 1",
        "tidegate_lease_expirations_total 0",
        "tidegate_fenced_writes_total 0",
        "tidegate_refused_submissions_total 0",
        "tidegate_projector_lag_entries 0",
        "# TYPE tidegate_commit_seconds histogram",
        "# EOF",
    ] {
        assert!(text.lines().any(|told| told == line), "{line} is not in:\n{text}");
    }
    let (status, stats) = api.get("/api/v1/actions/greet.one/queue-stats").await;
    assert_eq!(status, StatusCode::OK, "{stats}");
    assert_eq!(stats["ended"], json!({ "succeeded": 1 }));
    assert_eq!(stats["waited"]["worker"]["count"], 1, "{stats}");
    let (_, stats) = api.get("/api/v1/actions/nobody.knows/queue-stats").await;
    assert_eq!((&stats["waiting"], &stats["running"]), (&json!(1), &json!(0)), "{stats}");
    assert_eq!(api.get("/api/v1/actions/nothing/queue-stats").await.0, StatusCode::NOT_FOUND);
    api.send(Method::POST, &format!("/api/v1/runs/{waits}/cancel"), json!({})).await;
    let (_, Json::String(text)) = api.get("/metrics").await else { panic!("it is no JSON") };
    assert!(!text.contains("tidegate_queue_depth{"), "nothing waits any more:\n{text}");
}

/// What the dashboard and the reference speak of is measured.
#[tokio::test]
async fn every_metric_that_is_spoken_of_is_there() {
    let api = Api::start(Access::Loopback).await;
    let (_, Json::String(text)) = api.get("/metrics").await else { panic!("it is no JSON") };
    let families: Vec<&str> =
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    for told in [
        include_str!("../../../../deploy/grafana.json"),
        include_str!("../../../../docs/reference/metrics.md"),
    ] {
        let words = told.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'));
        let names = words.filter(|word| word.starts_with("tidegate_"));
        for name in names {
            let family = name.trim_end_matches("_total").trim_end_matches("_bucket");
            assert!(families.contains(&family), "{name} is not among {families:?}");
        }
    }
}
