//! Requests, against a server on this machine.

mod support;

use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use support::engine::Heard;
use support::server::{Asked, Reply, Server};
use support::{bench, error, failure, http, output, within};
use tidegate_core::model::Cause;
use tidegate_core::protocol::{Failure, Outcome};
use tidegate_core::time::Span;

const TOKEN: &str = "open sesame";

/// A reference to a file that holds the token.
fn secret(file: &tempfile::NamedTempFile) -> Value {
    std::fs::write(file.path(), TOKEN).unwrap();
    json!({ "secret": format!("file:{}", file.path().display()) })
}

fn cause(failure: &Failure) -> Option<&str> {
    failure.cause.as_ref().map(|Cause(name)| name.as_str())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_is_sent() {
    let (mut bench, mut server) = (bench(|_| {}), Server::start(Reply::echo).await);
    let form = json!({ "form": { "a": "1 & 2", "b": "ä" } });
    let cases = [
        (json!({ "method": "GET", "query": { "q": "a b&c" } }), "/x?y=1&q=a+b%26c", "", None),
        (json!({ "method": "DELETE" }), "/x?y=1", "", None),
        (json!({ "method": "PUT", "content": { "json": "[1]" } }), "/x?y=1", "[1]", Some("application/json")),
        (
            json!({ "method": "POST", "content": form }),
            "/x?y=1",
            "a=1+%26+2&b=%C3%A4",
            Some("application/x-www-form-urlencoded"),
        ),
        (
            json!({ "method": "PATCH", "content": { "body": "hi" }, "headers": { "content-type": "text/x" } }),
            "/x?y=1",
            "hi",
            Some("text/x"),
        ),
    ];
    for (mut order, target, body, kind) in cases {
        order["url"] = json!(server.url("/x?y=1#part"));
        let output = output(bench.ask(order.clone()).await);
        let Asked { method, target: asked, headers, body: sent, .. } = server.asked().await;
        assert_eq!((&json!(method), asked.as_str(), sent.as_str()), (&order["method"], target, body));
        assert_eq!(headers.get("content-type").map(String::as_str), kind);
        assert!(headers["user-agent"].starts_with("tidegate/"));
        assert_eq!(headers["host"], server.address.to_string());
        assert_eq!((&output["status"], &output["body"]["method"]), (&json!(200), &json!(method)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_json_or_text_or_bytes() {
    let mut bench = bench(|_| {});
    let server = Server::start(|asked| match asked.target.as_str() {
        "/json" => Reply::new(200, &[("content-type", "application/problem+json")], "{\"a\":[1]}"),
        "/broken" => Reply::new(200, &[("content-type", "application/json")], "{"),
        "/bytes" => Reply::new(200, &[], b"\xff\x00"),
        "/many" => Reply::new(200, &[("x-a", "1"), ("X-A", "2")], "{}"),
        _ => Reply::new(204, &[], ""),
    })
    .await;
    let mut ask = async |path| output(bench.ask(json!({ "url": server.url(path) })).await);
    assert_eq!(ask("/json").await["body"], json!({ "a": [1] }));
    assert_eq!(ask("/broken").await["body"], "{");
    let bytes = ask("/bytes").await;
    assert_eq!((&bytes["body"], &bytes["body_base64"]), (&json!("/wA="), &json!(true)));
    let many = ask("/many").await;
    assert_eq!((&many["headers"]["x-a"], &many["body"]), (&json!("1, 2"), &json!("{}")));
    assert_eq!(
        ask("/nothing").await,
        json!({ "status": 204, "headers": { "content-length": "0" }, "body": "" })
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_reach_the_server_and_nobody_else() {
    let (mut bench, file) = (bench(|_| {}), tempfile::NamedTempFile::new().unwrap());
    let mut server = Server::start(|asked| match asked.target.split('?').next() {
        Some("/wrong") => Reply::new(400, &[], format!("bad {asked:?}")),
        // Where the error ends.
        Some("/cut") => Reply::new(400, &[], format!("{}{TOKEN}", "x".repeat(195))),
        _ => Reply::echo(asked),
    })
    .await;
    let (token, form) = (secret(&file), json!({ "form": { "t": secret(&file) } }));
    let base64 = "bWU6b3BlbiBzZXNhbWU=";
    for path in ["/", "/wrong", "/cut"] {
        let orders = [
            (json!({ "auth": { "bearer": token } }), "Bearer open sesame"),
            (json!({ "auth": { "basic": { "user": "me", "password": token } } }), base64),
            (json!({ "headers": { "x-key": token } }), TOKEN),
            (json!({ "query": { "key": token } }), "key=open+sesame"),
            (json!({ "method": "POST", "content": form }), "t=open+sesame"),
        ];
        for (mut order, sent) in orders {
            order["url"] = json!(server.url(path));
            let outcome = format!("{:?}", bench.ask(order).await);
            let asked = format!("{:?}", server.asked().await);
            assert!(asked.contains(sent), "{asked}");
            assert!(outcome.contains("***"), "{outcome}");
            for hidden in ["open", "sesame", base64] {
                assert!(!outcome.contains(hidden), "{outcome}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_sent_says_why_and_is_not_worth_another_try() {
    let mut bench = bench(|_| {});
    let cases = [
        (json!({ "url": "no url" }), "GET no url: the address: relative URL without a base"),
        (json!({ "url": "file:///etc/passwd" }), "GET file:///etc/passwd: `file` addresses cannot be asked"),
        (json!({ "url": "http://me:pass@h/" }), "user and password go under `auth`"),
        (json!({ "url": "http://h/", "headers": { "a": "b\nc" } }), "the header `a` has characters"),
        (
            json!({ "url": "http://h/", "headers": { "a": { "secret": "file:/none" } } }),
            "`file:/none` cannot be read",
        ),
        (json!({ "url": "http://169.254.169.254/latest" }), "`169.254.169.254` is link-local"),
        (json!({ "url": "http://2852039166/" }), "`169.254.169.254` is link-local"),
        (json!({ "url": "http://[::ffff:a9fe:a9fe]/" }), "is link-local"),
    ];
    for (order, expected) in cases {
        let failure = failure(bench.ask(order).await);
        assert!(failure.error.contains(expected), "{}", failure.error);
        assert_eq!(cause(&failure), None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn redirections_are_followed_and_secrets_stay_with_their_server() {
    let (mut bench, file) = (bench(|_| {}), tempfile::NamedTempFile::new().unwrap());
    let mut other = Server::start(Reply::echo).await;
    let there = other.url("/there");
    let mut server = Server::start(move |asked| match asked.target.as_str() {
        "/near" => Reply::redirect(302, "end?x=1"),
        "/far" => Reply::redirect(307, &there),
        "/see" => Reply::redirect(303, "/end"),
        _ => Reply::echo(asked),
    })
    .await;
    let private =
        json!({ "auth": { "bearer": secret(&file) }, "headers": { "x-key": secret(&file), "x-plain": "1" } });
    let order = |path: &str, content: Value| {
        let mut order = private.clone();
        order["url"] = json!(server.url(path));
        order["method"] = json!("POST");
        order["content"] = content;
        order
    };
    let text = || json!({ "body": "hello" });
    let orders = [
        order("/near", text()),
        order("/see", text()),
        order("/far", text()),
        order("/far", json!({ "form": { "a": secret(&file) } })),
    ];

    for (order, target) in orders.iter().zip(["/end?x=1", "/end"]) {
        output(bench.ask(order.clone()).await);
        assert_eq!(server.asked().await.body, "hello");
        let Asked { method, target: asked, headers, body, .. } = server.asked().await;
        assert_eq!((method.as_str(), asked.as_str(), body.as_str()), ("GET", target, ""));
        assert!(headers["authorization"].contains(TOKEN) && headers["x-key"] == TOKEN);
        assert!(!headers.contains_key("content-type"));
    }

    output(bench.ask(orders[2].clone()).await);
    assert!(server.asked().await.header("authorization").is_some());
    let Asked { method, target, headers, body, .. } = other.asked().await;
    assert_eq!((method.as_str(), target.as_str(), body.as_str()), ("POST", "/there", "hello"));
    assert!(!headers.contains_key("authorization") && !headers.contains_key("x-key"));
    assert_eq!(headers["x-plain"], "1");

    let refused = error(bench.ask(orders[3].clone()).await);
    assert!(
        refused.ends_with("the server redirects to another one, and what is sent holds a secret"),
        "{refused}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_is_another_server_than_its_address() {
    let (mut bench, file) = (bench(|_| {}), tempfile::NamedTempFile::new().unwrap());
    let mut server = Server::start(|asked| match asked.header("host") {
        Some(host) if host.starts_with("localhost") && asked.target == "/" => {
            let port = host.rsplit(':').next().unwrap_or_default();
            Reply::redirect(308, &format!("http://127.0.0.1:{port}/end"))
        }
        _ => Reply::echo(asked),
    })
    .await;
    let order = json!({ "url": server.other_url("/"), "auth": { "bearer": secret(&file) } });
    assert_eq!(output(bench.ask(order).await)["status"], 200);
    assert!(server.asked().await.header("authorization").is_some());
    assert_eq!(server.asked().await.header("authorization"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn redirections_have_an_end_and_go_nowhere_else() {
    let mut bench = bench(|_| {});
    let server = Server::start(|asked| match asked.target.as_str() {
        "/file" => Reply::redirect(302, "file:///etc/passwd"),
        "/meta" => Reply::redirect(302, "http://169.254.169.254/"),
        _ => Reply::redirect(302, "/round"),
    })
    .await;
    let round = failure(bench.ask(json!({ "url": server.url("/"), "redirects": 3 })).await);
    assert!(round.error.ends_with("there are more than 3 redirections"), "{}", round.error);
    assert_eq!(cause(&round), None);
    let none = failure(bench.ask(json!({ "url": server.url("/"), "redirects": 0 })).await);
    assert_eq!(cause(&none), Some("status:302"));
    let wanted = json!({ "url": server.url("/"), "redirects": 0, "ok": ["status:3xx"] });
    assert_eq!(output(bench.ask(wanted).await)["headers"]["location"], "/round");
    let file = error(bench.ask(json!({ "url": server.url("/file") })).await);
    assert!(file.ends_with("`file` addresses cannot be asked"), "{file}");
    let meta = error(bench.ask(json!({ "url": server.url("/meta") })).await);
    assert!(meta.contains("is link-local"), "{meta}");
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_have_a_largest_size() {
    let mut bench = bench(|_| {});
    let server = Server::start(|asked| match asked.target.as_str() {
        "/fits" => Reply::text(&"a".repeat(1024)),
        "/large" => Reply::unfinished("HTTP/1.1 200 OK\r\ncontent-length: 1025\r\n\r\n"),
        _ => {
            let chunk = format!("400\r\n{}\r\n", "a".repeat(1024));
            Reply::unfinished(&format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{chunk}{chunk}"))
        }
    })
    .await;
    assert_eq!(output(bench.ask(json!({ "url": server.url("/fits") })).await)["body"], "a".repeat(1024));
    for path in ["/large", "/endless"] {
        let failure = failure(bench.ask(json!({ "url": server.url(path) })).await);
        let expected = "the answer is larger than the 1024 bytes that `max_size` allows";
        assert!(failure.error.ends_with(expected), "{}", failure.error);
        assert_eq!(cause(&failure), None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_that_is_not_good_is_a_failure_with_an_output() {
    let mut bench = bench(|_| {});
    let server = Server::start(|asked| match asked.target.as_str() {
        "/busy" => Reply::new(429, &[("retry-after", "7")], "\nslow down\nplease"),
        "/page" => Reply::new(500, &[("content-type", "text/html")], "<html>"),
        _ => Reply::new(404, &[("content-type", "application/json")], "{\"why\":\"gone\"}"),
    })
    .await;
    let busy = failure(bench.ask(json!({ "url": server.url("/busy") })).await);
    assert_eq!(busy.error, format!("GET {}: status 429 Too Many Requests: slow down", server.url("/busy")));
    assert_eq!((cause(&busy), busy.retry_after), (Some("status:429"), Some(Span::seconds(7))));
    let page = failure(bench.ask(json!({ "url": server.url("/page") })).await);
    assert_eq!(page.error, format!("GET {}: status 500 Internal Server Error", server.url("/page")));
    let gone = failure(bench.ask(json!({ "url": server.url("/gone") })).await);
    let said: Value = serde_json::from_slice(gone.output.as_ref().unwrap().bytes()).unwrap();
    assert_eq!((&said["status"], &said["body"]["why"]), (&json!(404), &json!("gone")));
    assert_eq!((cause(&gone), gone.retry_after), (Some("status:404"), None));
    for ok in ["status:404", "status:4xx"] {
        let good = output(bench.ask(json!({ "url": server.url("/gone"), "ok": [ok] })).await);
        assert_eq!(good, said, "{ok}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_cannot_be_reached_is_known_as_such() {
    let mut bench = bench(|_| {});
    let server = Server::start(|asked| match asked.target.as_str() {
        "/mute" => Reply::cut_off(""),
        "/long" => Reply::unfinished(&format!("HTTP/1.1 200 OK\r\nx: {}", "a".repeat(1 << 20))),
        _ => Reply::cut_off("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf"),
    })
    .await;
    let nobody = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}/", listener.local_addr().unwrap())
    };
    let no_encryption = server.url("/").replace("http:", "https:");
    let cases = [
        (nobody, "there is no connection: Connection refused"),
        (no_encryption, "there is no connection: "),
        (server.url("/mute"), "there is no answer: connection closed"),
        (server.url("/long"), "there is no answer: message head is too large"),
        (server.url("/half"), "the answer breaks off: "),
    ];
    for (url, expected) in cases {
        let failure = failure(bench.ask(json!({ "url": url })).await);
        assert_eq!(cause(&failure), Some("connect"), "{}", failure.error);
        assert!(failure.error.starts_with(&format!("GET {url}: {expected}")), "{}", failure.error);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_stopped_closes_its_connection() {
    let mut bench = bench(|_| {});
    let mut server = Server::start(|asked| match asked.target.as_str() {
        "/head" => Reply::unfinished(""),
        _ => Reply::unfinished("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf"),
    })
    .await;
    for path in ["/head", "/body"] {
        let lease = bench.engine.hand_out(http(json!({ "url": server.url(path) })));
        let asked = server.asked().await;
        bench.engine.stop(lease);
        assert_eq!(within(bench.engine.outcome(lease)).await, Outcome::Stopped);
        assert_eq!(server.closed().await, asked.connection);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_renewals_its_connection_is_closed_and_nothing_is_reported() {
    let mut bench = bench(|_| {});
    bench.engine.lease = Span::seconds(1);
    bench.engine.stop_renewing();
    let mut server = Server::start(|_| Reply::unfinished("")).await;
    bench.engine.hand_out(http(json!({ "url": server.url("/") })));
    let asked = server.asked().await;
    assert_eq!(server.closed().await, asked.connection);
    bench.control.shut_down();
    let mut reported = Vec::new();
    loop {
        match within(bench.engine.next()).await {
            Heard::Reported(lease, outcome) => reported.push((lease, outcome)),
            Heard::Left => break,
            _ => {}
        }
    }
    assert_eq!(reported, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_goes_hands_its_requests_back() {
    let mut bench = bench(|_| {});
    let mut server = Server::start(|_| Reply::unfinished("")).await;
    let lease = bench.engine.hand_out(http(json!({ "url": server.url("/") })));
    let asked = server.asked().await;
    bench.control.shut_down();
    assert_eq!(server.closed().await, asked.connection);
    loop {
        match within(bench.engine.next()).await {
            Heard::Reported(reported, outcome) => {
                assert_eq!((reported, outcome), (lease, Outcome::HandedBack));
                break;
            }
            other => assert_ne!(other, Heard::Left),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_run_side_by_side_and_share_connections_one_after_the_other() {
    static OPEN: AtomicBool = AtomicBool::new(false);
    let mut bench = bench(|_| {});
    let mut server = Server::start(|_| match OPEN.load(Ordering::SeqCst) {
        true => Reply::text("hello"),
        false => Reply::unfinished(""),
    })
    .await;
    let waiting: Vec<_> =
        (0..50).map(|_| bench.engine.hand_out(http(json!({ "url": server.url("/") })))).collect();
    for _ in &waiting {
        server.asked().await;
    }
    waiting.iter().for_each(|lease| bench.engine.stop(*lease));
    for _ in &waiting {
        server.closed().await;
    }
    let mut stopped = 0;
    while stopped < waiting.len() {
        match within(bench.engine.next()).await {
            Heard::Reported(_, outcome) => {
                assert_eq!(outcome, Outcome::Stopped);
                stopped += 1;
            }
            other => assert!(matches!(other, Heard::Joined(_)), "{other:?}"),
        }
    }
    OPEN.store(true, Ordering::SeqCst);
    let mut connections = Vec::new();
    for _ in 0..5 {
        assert_eq!(output(bench.ask(json!({ "url": server.url("/") })).await)["body"], "hello");
        connections.push(server.asked().await.connection);
    }
    connections.dedup();
    assert_eq!(connections.len(), 1);
}
