//! A PostgreSQL that crashes and comes back under an open handle: it goes on by itself.

mod support;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use support::database::server::Server;
use support::within;
use tidegate::{Ending, Error, Tidegate};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, block_in_place};

/// Jobs submitted and waited for, one after the other, by a program that only ever asks again.
struct Client {
    asks: JoinHandle<u32>,
    stop: watch::Sender<bool>,
    /// The number of each job whose end is known.
    ended: mpsc::UnboundedReceiver<u32>,
}

impl Client {
    fn start(tide: Tidegate, name: u32) -> Client {
        let (stop, stopped) = watch::channel(false);
        let (tell, ended) = mpsc::unbounded_channel();
        let asks = tokio::spawn(async move {
            let mut count = 0;
            while !*stopped.borrow() {
                let number = 1_000_000 * name + count;
                let ending = loop {
                    match within(done(&tide, number)).await {
                        Ok(ending) => break ending,
                        Err(error) => assert!(error.may_pass(), "{error}"),
                    }
                    // That it is over is told to whoever wants to know.
                    let mut outage = tide.engine().outage();
                    within(outage.wait_for(Option::is_none)).await.unwrap();
                };
                assert_eq!(ending.output::<u32>().unwrap(), number);
                count += 1;
                tell.send(number).unwrap();
            }
            count
        });
        Client { asks, stop, ended }
    }
}

/// The same again for the same number, thanks to the key.
async fn done(tide: &Tidegate, number: u32) -> Result<Ending, Error> {
    tide.submit("note", &number).key(number.to_string()).await?.wait().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_crashes_and_comes_back_costs_nothing_but_the_time() {
    let server = block_in_place(Server::start);
    let tide = Tidegate::open(&server.url).await.unwrap();
    let noted = Arc::new(Mutex::new(BTreeSet::new()));
    let notes = noted.clone();
    tide.action("note", move |_, number: u32| {
        notes.lock().unwrap().insert(number);
        async move { Ok::<_, String>(number) }
    });
    let mut working = tide.work(4).start().await.unwrap();
    let mut clients: Vec<Client> = (1..=4).map(|name| Client::start(tide.clone(), name)).collect();
    for _ in 0..2 {
        for client in &mut clients {
            within(client.ended.recv()).await.unwrap();
        }
        block_in_place(|| server.stop());
        let refused = within(async { tide.submit("note", &0).await }).await;
        assert!(refused.as_ref().is_err_and(Error::may_pass), "{refused:?}");
        block_in_place(|| server.start_again());
        // What was told before is not the proof that it goes on.
        for client in &mut clients {
            while client.ended.try_recv().is_ok() {}
        }
    }
    let mut count = 0;
    for client in clients {
        client.stop.send(true).unwrap();
        count += within(client.asks).await.unwrap();
    }
    assert!(count >= 8, "each of them got on between the crashes");
    let noted = noted.lock().unwrap().iter().filter(|&&number| number > 0).count();
    assert_eq!(noted, count as usize, "every job ran, and none that nobody asked for");
    within(working.stop()).await.unwrap();
    within(tide.close()).await;
    block_in_place(|| drop(server));
}
