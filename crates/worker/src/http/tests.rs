//! How long servers are waited for.

use super::{Patience, Reach, Requests};
use std::time::Duration;
use tidegate_core::model::{Cause, Request};
use tidegate_core::protocol::Outcome;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const SHORT: Duration = Duration::from_millis(50);
const LONG: Duration = Duration::from_secs(600);

/// What becomes of a request to a server that says this, and then nothing more.
async fn ask(scheme: &str, says: &'static str, patience: Patience) -> (String, Cause) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("{scheme}://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        // Who answers before it was asked is not believed.
        assert!(stream.read(&mut [0; 1024]).await.unwrap() > 0);
        stream.write_all(says.as_bytes()).await.unwrap();
        std::future::pending::<()>().await;
        drop(stream);
    });
    let mut requests = Requests::new(Reach { link_local: false });
    requests.patience = patience;
    let request = serde_json::json!({ "method": "GET", "url": url, "redirects": 0, "max_size": 9 });
    let request: Request = serde_json::from_value(request).unwrap();
    match requests.perform(Box::new(request)).await {
        Outcome::Failed(failure) => (failure.error, failure.cause.unwrap()),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_password_in_an_address_is_refused_and_not_repeated() {
    for (url, shown) in [
        ("http://ada:hidden@127.0.0.1:1/a@b?c=d", "GET http://***@127.0.0.1:1/a@b?c=d: user and password"),
        ("http://ada:hid@den@127.0.0.1/", "GET http://***@127.0.0.1/: user and password"),
        ("http://ada:hidden@:x", "GET http://***@:x: the address"),
    ] {
        let request = serde_json::json!({ "method": "GET", "url": url, "redirects": 0, "max_size": 9 });
        let request: Request = serde_json::from_value(request).unwrap();
        let Outcome::Failed(failure) =
            Requests::new(Reach { link_local: false }).perform(Box::new(request)).await
        else {
            panic!("{url} was asked");
        };
        assert!(failure.error.starts_with(shown), "{}", failure.error);
    }
}

#[tokio::test]
async fn a_connection_has_to_stand_in_time() {
    let (error, cause) = ask("https", "", Patience { connect: SHORT, silence: LONG }).await;
    assert!(error.ends_with("there is no connection: timed out"), "{error}");
    assert_eq!(cause, Cause("connect".into()));
}

#[tokio::test]
async fn a_server_that_falls_silent_is_given_up() {
    for says in ["", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf"] {
        let (error, cause) = ask("http", says, Patience { connect: LONG, silence: SHORT }).await;
        assert!(error.contains("the server has said nothing for 0 seconds"), "{error}");
        assert_eq!(cause, Cause("timeout".into()));
    }
}
