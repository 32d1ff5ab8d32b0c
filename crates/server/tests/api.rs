//! The API over an engine with a store in memory: what every route answers to whom.

use axum::Router;
use axum::body::Body;
use axum::http::{Method, Request, StatusCode, header};
use http_body_util::BodyExt;
use serde_json::{Value as Json, json};
use tidegate::{Tidegate, Working};
use tidegate_server::{Access, App, Scope, Token, openapi, router};
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

/// Every route of the description, with something in the place of what it names.

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

fn routes() -> Vec<(Method, String, Option<Scope>)> {
    let description = serde_json::to_value(openapi()).unwrap();
    let mut routes = Vec::new();
    for (path, methods) in description["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let scope = operation["security"][0]["token"][0].as_str().and_then(Scope::parse);
            let path = path
                .replace("{id}", "run_00000000000000000000000000")
                .replace("{limit}", "runs")
                .replace("{name}", "far");
            routes.push((method.to_uppercase().parse().unwrap(), path, scope));
        }
    }
    assert!(routes.len() > 15, "{routes:?}");
    routes
}

#[tokio::test]
async fn nothing_but_health_is_open_and_every_route_takes_its_scope() {
    let secret = |scope: Scope| format!("a secret for {} that is long enough", scope.as_str());
    let tokens = Scope::ALL.map(|scope| Token::new(scope.as_str(), &secret(scope), [scope]));
    let api = Api::start(Access::Tokens(tokens.into())).await;
    let open: Vec<String> =
        routes().into_iter().filter(|(_, _, scope)| scope.is_none()).map(|(_, path, _)| path).collect();
    assert_eq!(open, ["/healthz", "/readyz"]);
    let mut guarded = routes();
    guarded.extend(
        ["/docs/", "/api/v1/openapi.json"].map(|path| (Method::GET, path.to_owned(), Some(Scope::Read))),
    );
    for (method, path, scope) in
        guarded.into_iter().filter_map(|(method, path, scope)| Some((method, path, scope?)))
    {
        let bare = || request(method.clone(), &path, (method != Method::GET).then(|| json!({})));
        let (status, problem) = api.ask(bare()).await;
        assert_eq!(
            (status, &problem["code"]),
            (StatusCode::UNAUTHORIZED, &json!("unauthorized")),
            "{method} {path}"
        );
        let with = |token: String| {
            let mut request = bare();
            request.headers_mut().insert(header::AUTHORIZATION, format!("Bearer {token}").parse().unwrap());
            request
        };
        assert_eq!(api.ask(with("guessed".to_owned())).await.0, StatusCode::UNAUTHORIZED);
        for other in Scope::ALL {
            // Who may follow events would be answered for ever.
            if path == "/api/v1/events" && [scope, Scope::Admin].contains(&other) {
                continue;
            }
            let (status, _) = api.ask(with(secret(other))).await;
            let is_let_in = other == scope || other == Scope::Admin;
            assert_eq!(status != StatusCode::FORBIDDEN, is_let_in, "{method} {path} with {}", other.as_str());
        }
    }
    let (status, problem) = api.get("/api/v1/nowhere").await;
    assert_eq!(status, StatusCode::UNAUTHORIZED, "{problem}");
}

#[tokio::test]
async fn without_tokens_foreign_pages_are_turned_away() {
    let api = Api::start(Access::Loopback).await;
    let from = |host: &str, origin: &str| {
        Request::builder()
            .uri("/api/v1/runs")
            .header(header::HOST, host)
            .header(header::ORIGIN, origin)
            .body(Body::empty())
            .unwrap()
    };
    assert_eq!(api.ask(from("localhost:7070", "http://localhost:7070")).await.0, StatusCode::OK);
    assert_eq!(api.ask(from("localhost:7070", "http://evil.example")).await.0, StatusCode::FORBIDDEN);
    assert_eq!(api.ask(from("evil.example", "http://evil.example")).await.0, StatusCode::MISDIRECTED_REQUEST);
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

/// What the dashboard and the reference speak of is measured.
#[tokio::test]
async fn every_metric_that_is_spoken_of_is_there() {
    let api = Api::start(Access::Loopback).await;
    let (_, Json::String(text)) = api.get("/metrics").await else { panic!("it is no JSON") };
    let families: Vec<&str> =
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    for told in [include_str!("../../../deploy/grafana.json"), include_str!("../../../docs/reference/metrics.md")] {
        let words = told.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'));
        let names = words.filter(|word| word.starts_with("tidegate_"));
        for name in names {
            let family = name.trim_end_matches("_total").trim_end_matches("_bucket");
            assert!(families.contains(&family), "{name} is not among {families:?}");
        }
    }
}
