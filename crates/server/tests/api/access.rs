//! Who may ask what, and what is written down about it.

use super::{Api, request};
use axum::body::Body;
use axum::http::{Method, Request, StatusCode, header};
use serde_json::{Value as Json, json};
use tidegate_server::{Access, Scope, Token, openapi};

/// Every route of the description, with something in the place of what it names.
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
async fn a_token_is_made_used_and_revoked_and_what_it_changes_is_written_down() {
    const ROOT: &str = "a secret that is long enough for anybody";
    let api = Api::start(Access::Tokens(vec![Token::new("root", ROOT, [Scope::Admin])])).await;
    let ask = async |token: &str, method: Method, path: &str, body: Option<Json>| {
        let mut request = request(method, path, body);
        request.headers_mut().insert(header::AUTHORIZATION, format!("Bearer {token}").parse().unwrap());
        api.ask(request).await
    };
    let new = json!({ "name": "ci", "scopes": ["read", "operate"], "lasting": "90d" });
    let (status, made) = ask(ROOT, Method::POST, "/api/v1/tokens", Some(new)).await;
    assert_eq!(status, StatusCode::CREATED, "{made}");
    let (id, token) = (made["id"].as_str().unwrap(), made["token"].as_str().unwrap());
    let set = || Some(json!({ "capacity": 3 }));
    let (status, problem) = ask(token, Method::PUT, "/api/v1/limits/pool:database", set()).await;
    assert_eq!(status, StatusCode::NO_CONTENT, "{problem}");
    assert_eq!(ask(token, Method::GET, "/api/v1/tokens", None).await.0, StatusCode::FORBIDDEN);
    let forged = format!("{}0", &token[..token.len() - 1]);
    let other = format!("{}1", &token[..token.len() - 1]);
    let wrong = if forged == token { other } else { forged };
    assert_eq!(ask(&wrong, Method::GET, "/api/v1/runs", None).await.0, StatusCode::UNAUTHORIZED);
    let (_, listed) = ask(ROOT, Method::GET, "/api/v1/tokens", None).await;
    assert_eq!((&listed[0]["name"], &listed[0]["expired"]), (&json!("ci"), &json!(false)));
    assert!(!listed.to_string().contains(token) && listed[0].get("hash").is_none(), "{listed}");

    let brief = json!({ "name": "brief", "scopes": ["read"], "lasting": "0s" });
    let (_, brief) = ask(ROOT, Method::POST, "/api/v1/tokens", Some(brief)).await;
    let (status, problem) = ask(brief["token"].as_str().unwrap(), Method::GET, "/api/v1/runs", None).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED, "its time is over: {problem}");

    let path = format!("/api/v1/tokens/{id}");
    assert_eq!(ask(ROOT, Method::DELETE, &path, None).await.0, StatusCode::NO_CONTENT);
    assert_eq!(ask(token, Method::GET, "/api/v1/runs", None).await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(ask(ROOT, Method::DELETE, &path, None).await.0, StatusCode::NOT_FOUND);

    let (_, page) = ask(ROOT, Method::GET, "/api/v1/audit?limit=3", None).await;
    let told = |page: &Json| -> Vec<String> {
        let items = page["items"].as_array().unwrap().iter();
        items
            .map(|item| format!("{} {} {}", item["by"], item["what"], item["about"]).replace('"', ""))
            .collect()
    };
    let brief = brief["id"].as_str().unwrap();
    let expected = [
        format!("root token.revoke {id}"),
        format!("root token.create {brief}"),
        "ci limit.set pool:database".to_owned(),
    ];
    assert_eq!(told(&page), expected);
    let next = format!("/api/v1/audit?cursor={}", page["next"].as_str().unwrap());
    let (_, page) = ask(ROOT, Method::GET, &next, None).await;
    assert_eq!((told(&page), &page["next"]), (vec![format!("root token.create {id}")], &Json::Null));
    for wrong in [
        json!({ "name": "", "scopes": ["read"] }),
        json!({ "name": "a", "scopes": [] }),
        json!({ "name": "a", "scopes": ["all"] }),
    ] {
        let (status, problem) = ask(ROOT, Method::POST, "/api/v1/tokens", Some(wrong)).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{problem}");
    }
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
