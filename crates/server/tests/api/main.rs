//! The API over an engine with a store in memory: what every route answers to whom.

mod access;
mod measured;
mod workers;

use axum::Router;
use axum::body::Body;
use axum::http::{Method, Request, StatusCode, header};
use http_body_util::BodyExt;
use serde_json::{Value as Json, json};
use tidegate::{Tidegate, Working};
use tidegate_server::{Access, App, openapi, router};
use tokio::sync::watch;
use tower_service::Service;

const FLOWS: &str = r#"
pools:
  database: { slots: 1 }
---
flow: greet
description: Says hello.
inputs:
  name: { type: string, default: world }
steps:
  hello: { action: greet.one, inputs: { name: "{{ inputs.name }}" } }
outputs: { said: "{{ steps.hello.output }}" }
---
action: greet.one
inputs: { name: { type: string } }
---
flow: never
steps:
  gone: { action: nobody.knows }
---
action: nobody.knows
pools: { database: 1 }
"#;

struct Api {
    router: Router,
    tide: Tidegate,
    _close: watch::Sender<bool>,
    _working: Working,
}

impl Api {
    async fn start(access: Access) -> Api {
        let tide = Tidegate::open("memory:").await.unwrap();
        tide.flow(FLOWS).unwrap();
        tide.action("greet.one", |_, input: Json| async move {
            match input["name"].as_str() {
                Some("nobody") => Err("there is nobody".to_owned()),
                name => Ok(format!("hello {}", name.unwrap_or_default())),
            }
        });
        let working = tide.work(4).start().await.unwrap();
        let (close, closing) = watch::channel(false);
        let router = router(App::new(tide.clone(), access, closing));
        Api { router, tide, _close: close, _working: working }
    }

    async fn ask(&self, request: Request<Body>) -> (StatusCode, Json) {
        let response = self.router.clone().call(request).await.unwrap();
        let status = response.status();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        let json = serde_json::from_slice(&bytes)
            .unwrap_or_else(|_| Json::String(String::from_utf8_lossy(&bytes).into_owned()));
        (status, json)
    }

    async fn get(&self, path: &str) -> (StatusCode, Json) {
        self.ask(request(Method::GET, path, None)).await
    }

    async fn send(&self, method: Method, path: &str, body: Json) -> (StatusCode, Json) {
        self.ask(request(method, path, Some(body))).await
    }

    /// Its id.
    async fn submit(&self, body: Json) -> String {
        let (status, accepted) = self.send(Method::POST, "/api/v1/runs", body).await;
        assert_eq!(status, StatusCode::CREATED, "{accepted}");
        accepted["id"].as_str().unwrap().to_owned()
    }
}

fn request(method: Method, path: &str, body: Option<Json>) -> Request<Body> {
    let request = Request::builder().method(method).uri(path).header(header::HOST, "localhost");
    match body {
        None => request.body(Body::empty()),
        Some(body) => {
            request.header(header::CONTENT_TYPE, "application/json").body(Body::from(body.to_string()))
        }
    }
    .unwrap()
}

#[tokio::test]
async fn a_run_is_submitted_and_looked_at_until_it_has_ended() {
    let api = Api::start(Access::Loopback).await;
    let id =
        api.submit(json!({ "name": "greet", "inputs": { "name": "Ada" }, "tags": { "team": "a" } })).await;
    let (status, run) = api.get(&format!("/api/v1/runs/{id}?wait=30s")).await;
    assert_eq!((status, &run["state"]), (StatusCode::OK, &json!("succeeded")), "{run}");
    assert_eq!((&run["output"]["said"], &run["inputs"]["name"]), (&json!("hello Ada"), &json!("Ada")));
    assert_eq!(run["steps"][0]["name"], "hello");
    assert_eq!(run["tags"]["team"], "a");
    let (_, page) = api.get("/api/v1/runs?name=greet&state=succeeded&limit=1").await;
    assert_eq!((&page["items"][0]["id"], &page["next"]), (&json!(id), &Json::Null));
}

#[tokio::test]
async fn pages_follow_each_other() {
    let api = Api::start(Access::Loopback).await;
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.insert(0, api.submit(json!({ "name": "greet" })).await);
    }
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let (_, page) = api.get(&format!("/api/v1/runs?limit=2{cursor}")).await;
        let items = page["items"].as_array().unwrap();
        seen.extend(items.iter().map(|run| run["id"].as_str().unwrap().to_owned()));
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(seen, ids);
}

#[tokio::test]
async fn the_same_key_is_accepted_once() {
    let api = Api::start(Access::Loopback).await;
    let keyed = |name: &str| {
        let mut request = request(
            Method::POST,
            "/api/v1/runs",
            Some(json!({ "name": "greet", "inputs": { "name": name } })),
        );
        request.headers_mut().insert("idempotency-key", "order-1".parse().unwrap());
        request
    };
    let (_, first) = api.ask(keyed("Ada")).await;
    let (status, again) = api.ask(keyed("Ada")).await;
    assert_eq!((status, &again), (StatusCode::CREATED, &first));
    let (status, other) = api.ask(keyed("Bob")).await;
    assert_eq!((status, &other["code"]), (StatusCode::CONFLICT, &json!("refused")), "{other}");
}

#[tokio::test]
async fn what_is_wrong_is_said_in_one_form() {
    let api = Api::start(Access::Loopback).await;
    let bodies = [
        (json!({ "name": "great" }), StatusCode::NOT_FOUND),
        (json!({ "name": "greet", "inputs": { "nmae": "x" } }), StatusCode::UNPROCESSABLE_ENTITY),
        (json!({ "name": "greet", "inputs": { "name": 7 } }), StatusCode::UNPROCESSABLE_ENTITY),
        (json!({ "name": "greet", "priority": 101 }), StatusCode::UNPROCESSABLE_ENTITY),
        (json!({ "name": "greet", "priority": 1000 }), StatusCode::UNPROCESSABLE_ENTITY),
        (json!({ "name": "greet", "delay": "soon" }), StatusCode::UNPROCESSABLE_ENTITY),
        (json!({ "name": "greet", "at": "soon" }), StatusCode::UNPROCESSABLE_ENTITY),
        (json!({ "name": "greet", "nmae": "x" }), StatusCode::UNPROCESSABLE_ENTITY),
        (json!({ "inputs": {} }), StatusCode::UNPROCESSABLE_ENTITY),
        (json!([]), StatusCode::UNPROCESSABLE_ENTITY),
    ];
    for (body, expected) in bodies {
        let (status, problem) = api.send(Method::POST, "/api/v1/runs", body.clone()).await;
        assert_eq!(status, expected, "{body}: {problem}");
        assert_eq!(problem["status"], expected.as_u16(), "{problem}");
        assert!(problem["detail"].as_str().is_some_and(|detail| !detail.is_empty()), "{problem}");
    }
    let (_, problem) = api.send(Method::POST, "/api/v1/runs", json!({ "name": "great" })).await;
    assert_eq!(problem["help"], "did you mean `greet`?");
    let gone = "run_00000000000000000000000000";
    for path in
        ["runs/x", &format!("runs/{gone}"), &format!("tasks/{gone}/why"), "limits/pool:none", "nowhere"]
    {
        let (status, problem) = api.get(&format!("/api/v1/{path}")).await;
        assert_eq!(
            (status, &problem["code"]),
            (StatusCode::NOT_FOUND, &json!("not-found")),
            "{path}: {problem}"
        );
    }
    for path in
        ["runs?state=x", "runs?cursor=x", "runs?what=x", "limits/x", "queue?limit=x", "events?after=x"]
    {
        let (status, problem) = api.get(&format!("/api/v1/{path}")).await;
        assert_eq!(
            (status, &problem["code"]),
            (StatusCode::UNPROCESSABLE_ENTITY, &json!("invalid")),
            "{path}"
        );
    }
}

#[tokio::test]
async fn what_waits_can_be_explained_and_cancelled() {
    let api = Api::start(Access::Loopback).await;
    let id = api.submit(json!({ "name": "never" })).await;
    let step = format!("{id}/gone");
    let mut events = api.tide.events().after(tidegate::Position::START);
    while events.next().await.unwrap().what.kind() != "run.started" {}
    let (status, why) = api.get(&format!("/api/v1/tasks/{id}%2Fgone/why")).await;
    assert_eq!((status, &why["name"]), (StatusCode::OK, &json!(step)), "{why}");
    let (_, queue) = api.get(&format!("/api/v1/queue?run={id}")).await;
    assert_eq!(
        queue["items"].as_array().map(Vec::len).unwrap_or(0) as u64,
        queue["waiting"].as_u64().unwrap()
    );
    let (status, _) = api.send(Method::POST, &format!("/api/v1/runs/{id}/cancel"), json!({})).await;
    assert_eq!(status, StatusCode::ACCEPTED);
    let (_, run) = api.get(&format!("/api/v1/runs/{id}?wait=30s")).await;
    assert_eq!(run["state"], "cancelled");
}

#[tokio::test]
async fn what_failed_is_done_again() {
    let api = Api::start(Access::Loopback).await;
    let id = api.submit(json!({ "name": "greet", "inputs": { "name": "nobody" } })).await;
    let (_, run) = api.get(&format!("/api/v1/runs/{id}?wait=30s")).await;
    assert_eq!((&run["state"], &run["steps"][0]["error"]), (&json!("failed"), &json!("there is nobody")));
    let (status, again) = api.send(Method::POST, &format!("/api/v1/runs/{id}/retry"), json!({})).await;
    assert_eq!(status, StatusCode::CREATED, "{again}");
    let (_, run) = api.get(&format!("/api/v1/runs/{}?wait=30s", again["id"].as_str().unwrap())).await;
    assert_eq!(run["retry_of"], id);
}

#[tokio::test]
async fn a_limit_is_set_unless_somebody_has_changed_it_since() {
    let api = Api::start(Access::Loopback).await;
    // What a program defines is declared with the first submission.
    api.submit(json!({ "name": "greet" })).await;
    let path = "/api/v1/limits/pool:database";
    let (_, limits) = api.get("/api/v1/limits?pools=true").await;
    assert_eq!(
        (&limits["items"][0]["limit"], &limits["items"][0]["capacity"]),
        (&json!("pool:database"), &json!(1))
    );
    let response = api.router.clone().call(request(Method::GET, path, None)).await.unwrap();
    let tag = response.headers()[header::ETAG].clone();
    let change = |capacity: u32| {
        let mut request = request(Method::PUT, path, Some(json!({ "capacity": capacity, "lasting": "2h" })));
        request.headers_mut().insert(header::IF_MATCH, tag.clone());
        request
    };
    assert_eq!(api.ask(change(3)).await.0, StatusCode::NO_CONTENT);
    let (status, problem) = api.ask(change(4)).await;
    assert_eq!((status, &problem["code"]), (StatusCode::PRECONDITION_FAILED, &json!("changed")));
    let (_, limit) = api.get(path).await;
    assert_eq!(
        (&limit["capacity"], &limit["declared"], &limit["set"]["by"]),
        (&json!(3), &json!(1), &json!("local"))
    );
    assert!(limit["set"]["until"].is_string());
    assert_eq!(api.send(Method::DELETE, path, json!({})).await.0, StatusCode::NO_CONTENT);
    assert_eq!(api.get(path).await.1["capacity"], 1);
}

#[tokio::test]
async fn definitions_and_workers_are_listed() {
    let api = Api::start(Access::Loopback).await;
    api.submit(json!({ "name": "greet" })).await;
    let (_, flows) = api.get("/api/v1/flows").await;
    assert_eq!((&flows[0]["name"], &flows[0]["description"]), (&json!("greet"), &json!("Says hello.")));
    assert_eq!(flows[0]["inputs"][0]["default"], "world");
    let (_, actions) = api.get("/api/v1/actions").await;
    assert_eq!((&actions[0]["name"], &actions[1]["name"]), (&json!("greet.one"), &json!("nobody.knows")));
    let (_, workers) = api.get("/api/v1/workers").await;
    assert_eq!((&workers[0]["connected"], &workers[0]["actions"][0]), (&json!(true), &json!("greet.one")));
}

#[tokio::test]
async fn the_description_is_valid_and_every_operation_is_described() {
    let description = serde_json::to_value(openapi()).unwrap();
    assert_eq!(description["openapi"].as_str().map(|version| &version[..3]), Some("3.1"));
    for (path, methods) in description["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let summary = operation["summary"].as_str().or(operation["description"].as_str());
            assert!(summary.is_some_and(|text| !text.is_empty()), "{method} {path}");
            assert!(operation["tags"][0].is_string(), "{method} {path}");
        }
    }
}

#[tokio::test]
async fn files_are_declared_and_compared_with_what_was() {
    let api = Api::start(Access::Loopback).await;
    let put = async |text: &str, dry_run: bool| {
        let files = json!({ "files": [{ "name": "a.yaml", "text": text }], "dry_run": dry_run });
        api.send(Method::PUT, "/api/v1/definitions", files).await
    };
    let text = "flow: fresh\nsteps: { one: { action: greet.two } }\n---\naction: greet.two\n";
    let (status, applied) = put(text, true).await;
    assert_eq!((status, &applied["flows"][0]["change"]), (StatusCode::OK, &json!("new")), "{applied}");
    assert_eq!(
        api.send(Method::POST, "/api/v1/runs", json!({ "name": "fresh" })).await.0,
        StatusCode::NOT_FOUND
    );
    put(text, false).await;
    api.submit(json!({ "name": "fresh" })).await;
    let (_, applied) = put(&text.replace("one:", "two:"), false).await;
    let changes = (&applied["flows"][0]["change"], &applied["actions"][0]["change"]);
    assert_eq!(changes, (&json!("changed"), &json!("same")), "{applied}");
    let (status, problem) = put("flow: fresh\nstep: { one: { action: gone } }\n", false).await;
    assert_eq!((status, &problem["code"]), (StatusCode::UNPROCESSABLE_ENTITY, &json!("invalid-files")));
    let fault = &problem["faults"][1];
    assert_eq!((&fault["line"], &fault["file"]), (&json!(2), &json!("a.yaml")), "{problem}");
}
