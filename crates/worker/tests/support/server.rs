//! A server that answers as the test says, and tells what it was asked and which connections were closed.

use super::within;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// One request, as it arrived. Names of headers are in lower case.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    pub connection: usize,
    pub method: String,
    pub target: String,
    pub headers: BTreeMap<String, String>,
    pub body: String,
}

impl Asked {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}

/// What is sent back: bytes, as they are. Without an end the server then waits for the other side to close.
pub struct Reply {
    bytes: Vec<u8>,
    then: Then,
}

enum Then {
    Next,
    Wait,
    Close,
}

impl Reply {
    pub fn new(status: u16, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Reply {
        let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let length = body.as_ref().len();
        let head = format!("HTTP/1.1 {status} Because\r\n{headers}content-length: {length}\r\n\r\n");
        Reply { bytes: [head.as_bytes(), body.as_ref()].concat(), then: Then::Next }
    }

    pub fn text(body: &str) -> Reply {
        Reply::new(200, &[("content-type", "text/plain")], body)
    }

    pub fn json(body: &Value) -> Reply {
        Reply::new(200, &[("content-type", "application/json")], body.to_string())
    }

    pub fn redirect(status: u16, to: &str) -> Reply {
        Reply::new(status, &[("location", to)], "")
    }

    /// These bytes, and nothing more until the other side closes.
    pub fn unfinished(bytes: &str) -> Reply {
        Reply { bytes: bytes.into(), then: Then::Wait }
    }

    /// These bytes, and the end.
    pub fn cut_off(bytes: &str) -> Reply {
        Reply { bytes: bytes.into(), then: Then::Close }
    }

    /// Everything that was asked, as JSON.
    pub fn echo(asked: &Asked) -> Reply {
        let Asked { method, target, headers, body, .. } = asked;
        Reply::json(&json!({ "method": method, "target": target, "headers": headers, "body": body }))
    }
}

pub struct Server {
    pub address: SocketAddr,
    asked: UnboundedReceiver<Asked>,
    count: Arc<AtomicUsize>,
    closed: UnboundedReceiver<usize>,
}

type Answer = dyn Fn(&Asked) -> Reply + Send + Sync;

impl Server {
    pub async fn start(answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let ((tell, asked), (tell_closed, closed)) = (unbounded_channel(), unbounded_channel());
        let count: Arc<AtomicUsize> = Arc::default();
        let counted = count.clone();
        let answer: Arc<Answer> = Arc::new(move |asked: &Asked| {
            counted.fetch_add(1, Ordering::SeqCst);
            answer(asked)
        });
        tokio::spawn(async move {
            for connection in 0.. {
                let (stream, _) = listener.accept().await.unwrap();
                let (answer, tell, tell_closed) = (answer.clone(), tell.clone(), tell_closed.clone());
                tokio::spawn(async move {
                    serve(stream, connection, &*answer, &tell).await;
                    // The test may have ended.
                    let _ = tell_closed.send(connection);
                });
            }
        });
        Server { address, asked, count, closed }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The same server under another name.
    pub fn other_url(&self, path: &str) -> String {
        format!("http://localhost:{}{path}", self.address.port())
    }

    /// How often it was asked so far.
    pub fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    pub async fn asked(&mut self) -> Asked {
        within(self.asked.recv()).await.expect("the server lives")
    }

    /// The next connection that the other side closed.
    pub async fn closed(&mut self) -> usize {
        within(self.closed.recv()).await.expect("the server lives")
    }
}

async fn serve(stream: TcpStream, connection: usize, answer: &Answer, tell: &UnboundedSender<Asked>) {
    let mut stream = BufReader::new(stream);
    while let Some(asked) = read(&mut stream, connection).await {
        let reply = answer(&asked);
        let _ = tell.send(asked);
        if stream.write_all(&reply.bytes).await.is_err() {
            return;
        }
        match reply.then {
            Then::Next => {}
            Then::Close => return,
            // An error is an end, too.
            Then::Wait => drop(stream.read_to_end(&mut Vec::new()).await),
        }
    }
}

/// The next request; `None` if the other side has closed.
async fn read(stream: &mut BufReader<TcpStream>, connection: usize) -> Option<Asked> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let mut first = lines.first()?.split(' ').map(str::to_owned);
    let header = |line: &String| {
        let (name, value) = line.split_once(": ")?;
        Some((name.to_ascii_lowercase(), value.to_owned()))
    };
    let headers: BTreeMap<String, String> = lines[1..].iter().filter_map(header).collect();
    let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    let body = String::from_utf8(body).unwrap();
    Some(Asked { connection, method: first.next()?, target: first.next()?, headers, body })
}
