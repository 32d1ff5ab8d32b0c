//! Connections, with bounds on everything, until it is told to end.

use crate::app::App;
use crate::routes::router;
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// Connections at once; the next ones wait to be accepted.
const CONNECTIONS: usize = 10_000;
/// How long the head of a request may take to arrive, and a connection may lie idle.
const HEAD: Duration = Duration::from_secs(30);
/// How long requests that are under way may take to end once no more are taken.
const GRACE: Duration = Duration::from_secs(5);
/// How long to wait after a connection could not be accepted: there may be too many files open.
const REST: Duration = Duration::from_millis(50);

/// Serves until the app is closed, and then until the requests that are under way have ended, for a while.
pub async fn serve(listener: TcpListener, app: App) {
    let (closed, router) = (app.closed(), router(app));
    let (graceful, places) = (GracefulShutdown::new(), Arc::new(Semaphore::new(CONNECTIONS)));
    tokio::pin!(closed);
    loop {
        let accepting = async { (places.clone().acquire_owned().await, listener.accept().await) };
        let (place, accepted) = tokio::select! {
            accepted = accepting => accepted,
            () = &mut closed => break,
        };
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(REST).await;
            continue;
        };
        let connection = graceful.watch(connect(stream, router.clone()));
        tokio::spawn(async move {
            // A caller that goes away in the middle of something is nobody's error.
            let _ = connection.await;
            drop(place);
        });
    }
    drop(listener);
    let _ = tokio::time::timeout(GRACE, graceful.shutdown()).await;
}

fn connect(
    stream: TcpStream,
    router: Router,
) -> http1::Connection<TokioIo<TcpStream>, TowerToHyperService<Router>> {
    // Answers are small, and somebody waits for each.
    let _ = stream.set_nodelay(true);
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD);
    http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
}
