//! Workers over HTTP.

use super::Api;
use axum::http::{Method, StatusCode};
use serde_json::{Value as Json, json};
use tidegate_server::Access;

/// What a worker in another language does, one request after the other.
#[tokio::test]
async fn a_worker_over_http_takes_keeps_and_ends_what_it_is_given() {
    let api = Api::start(Access::Loopback).await;
    let worker = json!({ "name": "far", "actions": ["nobody.knows"], "slots": 2 });
    let (status, joined) = api.send(Method::POST, "/api/v1/workers", worker).await;
    assert_eq!(status, StatusCode::CREATED, "{joined}");
    let incarnation = joined["incarnation"].as_u64().unwrap();
    let poll = format!("/api/v1/workers/far/poll?wait=30s&incarnation={incarnation}");
    let id = api.submit(json!({ "name": "never" })).await;
    let (_, handed) = api.send(Method::POST, &poll, json!({})).await;
    let attempt = &handed["attempts"][0];
    assert_eq!((&attempt["run"], &attempt["action"]), (&json!(id), &json!("nobody.knows")), "{handed}");
    assert!(attempt["lease_left"].as_f64().unwrap() > 0.0);
    let lease = json!({ "task": attempt["task"], "epoch": attempt["epoch"] });
    let having =
        json!({ "incarnation": incarnation, "has": [lease.clone(), { "task": "7", "epoch": "1.1" }] });
    let (_, kept) = api.send(Method::POST, "/api/v1/workers/far/heartbeat", having).await;
    assert_eq!((&kept["renewed"], &kept["stop"][0]["task"]), (&json!([lease.clone()]), &json!("7")));
    let ended =
        |epoch: &Json| json!({ "task": lease["task"], "epoch": epoch, "state": "succeeded", "output": 7 });
    let finished = [ended(&json!("1.99999")), ended(&lease["epoch"])];
    let finished = json!({ "incarnation": incarnation, "finished": finished });
    let (status, told) = api.send(Method::POST, "/api/v1/workers/far/finish", finished).await;
    assert_eq!((status, &told["accepted"]), (StatusCode::OK, &json!([lease])), "{told}");
    assert_eq!(told["stale"], json!([{ "task": lease["task"], "epoch": "1.99999" }]));
    let (_, run) = api.get(&format!("/api/v1/runs/{id}?wait=30s")).await;
    assert_eq!(run["state"], "succeeded", "{run}");
}

#[tokio::test]
async fn a_worker_that_drains_gets_nothing_more_and_one_that_is_replaced_is_told() {
    let api = Api::start(Access::Loopback).await;
    let worker = json!({ "name": "far", "actions": ["nobody.knows"], "slots": 1 });
    let join = async || {
        let (_, joined) = api.send(Method::POST, "/api/v1/workers", worker.clone()).await;
        joined["incarnation"].as_u64().unwrap()
    };
    let first = join().await;
    let (status, _) =
        api.send(Method::POST, "/api/v1/workers/far/drain", json!({ "incarnation": first })).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    api.submit(json!({ "name": "never" })).await;
    let poll = |incarnation: u64| format!("/api/v1/workers/far/poll?wait=0s&incarnation={incarnation}");
    let (_, handed) = api.send(Method::POST, &poll(first), json!({})).await;
    assert_eq!(handed["attempts"], json!([]));
    let second = join().await;
    let (status, problem) = api.send(Method::POST, &poll(first), json!({})).await;
    assert_eq!((status, &problem["code"]), (StatusCode::GONE, &json!("replaced")));
    let having = json!({ "incarnation": first, "has": [] });
    let (status, _) = api.send(Method::POST, "/api/v1/workers/far/heartbeat", having).await;
    assert_eq!(status, StatusCode::GONE);
    let wait = format!("/api/v1/workers/far/poll?wait=30s&incarnation={second}");
    let (_, handed) = api.send(Method::POST, &wait, json!({})).await;
    assert_eq!(handed["attempts"].as_array().map(Vec::len), Some(1), "{handed}");
    let leave = json!({ "incarnation": second });
    assert_eq!(api.send(Method::POST, "/api/v1/workers/far/leave", leave).await.0, StatusCode::NO_CONTENT);
}
