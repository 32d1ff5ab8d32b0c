//! A server on this machine that answers as the test says, and remembers what it was asked.

use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Instant;

pub struct Server {
    pub address: SocketAddr,
    asked: Arc<Mutex<Asked>>,
}

type Asked = Vec<(Instant, String)>;
/// From a target, and how often it was asked for before, to a whole answer. Without one the server stays silent.
type Answer = dyn Fn(&str, usize) -> Option<String> + Send + Sync;

impl Server {
    pub fn start(answer: impl Fn(&str, usize) -> Option<String> + Send + Sync + 'static) -> Server {
        Server::start_over(Some, answer)
    }

    /// With a certificate that nobody has heard of, which is given as text.
    pub fn start_encrypted(
        answer: impl Fn(&str, usize) -> Option<String> + Send + Sync + 'static,
    ) -> (Server, String) {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("it can be made");
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("it is a key");
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|builder| {
                builder.with_no_client_auth().with_single_cert(vec![made.cert.der().clone()], key)
            })
            .expect("the two fit");
        let config = Arc::new(config);
        let encrypt = move |stream| {
            let connection = ServerConnection::new(config.clone()).ok()?;
            Some(StreamOwned::new(connection, stream))
        };
        (Server::start_over(encrypt, answer), made.cert.pem())
    }

    fn start_over<S: Read + Write>(
        open: impl Fn(TcpStream) -> Option<S> + Send + Sync + 'static,
        answer: impl Fn(&str, usize) -> Option<String> + Send + Sync + 'static,
    ) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
        let address = listener.local_addr().expect("it has an address");
        let asked = Arc::default();
        let (open, answer, remembered) = (Arc::new(open), Arc::new(answer), Arc::clone(&asked));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (open, answer, asked) = (open.clone(), answer.clone(), Arc::clone(&remembered));
                std::thread::spawn(move || serve(open(stream)?, &*answer, &asked));
            }
        });
        Server { address, asked }
    }

    /// When this was asked for, each time.
    pub fn asked(&self, target: &str) -> Vec<Instant> {
        let asked = self.asked.lock().expect("nobody panicked");
        asked.iter().filter(|(_, other)| other == target).map(|(at, _)| *at).collect()
    }
}

/// Until the other side closes.
fn serve(stream: impl Read + Write, answer: &Answer, asked: &Mutex<Asked>) -> Option<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let target = line(&mut stream)?.split(' ').nth(1)?.to_owned();
        while !line(&mut stream)?.is_empty() {}
        let before = {
            let mut asked = asked.lock().expect("nobody panicked");
            asked.push((Instant::now(), target.clone()));
            asked.iter().filter(|(_, other)| *other == target).count() - 1
        };
        match answer(&target, before) {
            Some(answer) => stream.get_mut().write_all(answer.as_bytes()).ok()?,
            None => drop(stream.read_to_end(&mut Vec::new())),
        }
    }
}

fn line(stream: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    (stream.read_line(&mut line).ok()? > 0).then(|| line.trim_end().to_owned())
}

/// A whole answer.
pub fn answer(status: u16, headers: &str, body: &str) -> Option<String> {
    let length = body.len();
    Some(format!("HTTP/1.1 {status} Because\r\n{headers}content-length: {length}\r\n\r\n{body}"))
}
