//! Something between a store and its database that can misbehave like a network.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};

const PASS: u8 = 0;
/// The next answer of the server is lost, and the connection with it; after that everything passes.
const LOSE_ONE: u8 = 1;
/// Nothing comes back, and nothing is cut.
const STALL: u8 = 2;
/// Nobody is let in.
const REFUSE: u8 = 3;

pub struct Proxy {
    pub url: String,
    mode: Arc<AtomicU8>,
    connections: Arc<Mutex<Vec<TcpStream>>>,
}

impl Proxy {
    pub fn before(url: &str) -> Self {
        let (credentials, rest) = url.rsplit_once('@').expect("a URL with a user");
        let (server, database) = rest.split_once('/').expect("a URL with a database");
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let own = listener.local_addr().unwrap();
        let (mode, connections) = (Arc::new(AtomicU8::new(PASS)), Arc::<Mutex<Vec<TcpStream>>>::default());
        let proxy = Proxy {
            url: format!("{credentials}@{own}/{database}"),
            mode: mode.clone(),
            connections: connections.clone(),
        };
        let server = server.to_owned();
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if mode.load(Ordering::SeqCst) == REFUSE {
                    continue;
                }
                let server = TcpStream::connect(&server).unwrap();
                let both = [client.try_clone().unwrap(), server.try_clone().unwrap()];
                connections.lock().unwrap().extend(both);
                forward(&client, &server, Arc::default());
                forward(&server, &client, mode.clone());
            }
        });
        proxy
    }

    pub fn pass(&self) {
        self.mode.store(PASS, Ordering::SeqCst);
    }

    pub fn lose_the_next_answer(&self) {
        self.mode.store(LOSE_ONE, Ordering::SeqCst);
    }

    pub fn stall(&self) {
        self.mode.store(STALL, Ordering::SeqCst);
    }

    /// Like a server that stopped.
    pub fn stop(&self) {
        self.mode.store(REFUSE, Ordering::SeqCst);
        for connection in self.connections.lock().unwrap().drain(..) {
            // It may be closed already.
            let _ = connection.shutdown(Shutdown::Both);
        }
    }

    pub fn has_lost_it(&self) -> bool {
        self.mode.load(Ordering::SeqCst) == PASS
    }
}

fn forward(from: &TcpStream, to: &TcpStream, mode: Arc<AtomicU8>) {
    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
    std::thread::spawn(move || {
        let mut buffer = [0; 16_384];
        loop {
            let read = from.read(&mut buffer).unwrap_or(0);
            if read == 0 || mode.compare_exchange(LOSE_ONE, PASS, Ordering::SeqCst, Ordering::SeqCst).is_ok()
            {
                break;
            }
            if mode.load(Ordering::SeqCst) == STALL {
                continue;
            }
            if to.write_all(&buffer[..read]).is_err() {
                break;
            }
        }
        // Both ends may be gone already.
        let _ = (to.shutdown(Shutdown::Both), from.shutdown(Shutdown::Both));
    });
}
