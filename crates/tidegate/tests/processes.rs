//! Real processes that share one PostgreSQL: the one that leads is stopped, or killed, and another goes on.

mod support;

use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use support::{Database, PATIENCE, Route, example, within};
use tidegate::{Tidegate, Working};
use tidegate_store::{PostgresStore, Reads};

/// From the end of who leads to the first job that another has done; a busy machine gets five times as long.
const TAKE_OVER: Duration = Duration::from_secs(5);
/// What is given to somebody who is gone comes back after so long.
const LEASE: Duration = Duration::from_secs(30);

/// A process, and what it says.
struct Member {
    child: Child,
    lines: Receiver<String>,
}

impl Member {
    fn start(database: &Database, name: &str) -> Member {
        let mut child = Command::new(example("member"))
            .args([&database.url, name])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (said, lines) = channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            // A test that has ended does not listen any more.
            output.lines().map_while(Result::ok).for_each(|line| drop(said.send(line)));
        });
        let member = Member { child, lines };
        member.hear("working");
        member
    }

    /// The next line that begins like this.
    fn hear(&self, beginning: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left);
            let line = line.unwrap_or_else(|_| panic!("`{beginning}` was not heard"));
            if line.starts_with(beginning) {
                return line;
            }
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Nothing new is submitted; when everything has ended, so does the process. How many jobs it submitted.
    fn finish(mut self) -> u64 {
        drop(self.child.stdin.take());
        let count = self.hear("submitted ");
        assert!(self.child.wait().unwrap().success());
        count["submitted ".len()..].parse().unwrap()
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Who leads, as the database says, once it is this one.
fn leads(database: &Database, name: &str) {
    let admin = database.admin();
    // Each start adds something of its own to the name.
    let leader = "select coalesce(regexp_replace((select server from tidegate.leader \
                  where lease_until > clock_timestamp()), '-[^-]*$', ''), '')";
    let deadline = Instant::now() + PATIENCE;
    while admin.value(leader) != name {
        assert!(Instant::now() < deadline, "{name} does not lead");
        std::thread::yield_now();
    }
}

/// How many jobs have ended whose keys begin like this. The tables follow the journal, and are brought up to date first.
fn ended(database: &Database, beginning: &str) -> u64 {
    PostgresStore::open(&database.url).unwrap().load().unwrap();
    let sql = format!("select count(*) from tidegate.ended_task where idempotency like '{beginning}%'");
    database.admin().value(&sql).parse().unwrap()
}

/// Every job has ended once, and well; nobody wrote anything who led no more.
fn all_is_well(database: &Database) {
    let admin = database.admin();
    let once = "select bool_and(state = 'succeeded'), count(*) = count(distinct idempotency) \
                from tidegate.ended_task";
    assert_eq!(admin.rows(once), [[Some("t".to_owned()), Some("t".to_owned())]]);
    assert_eq!(admin.value("select count(*) from tidegate.open_task"), "0");
    no_entry_of_the_deposed(database);
}

fn no_entry_of_the_deposed(database: &Database) {
    let late = "select count(*) from \
                (select term, max(term) over (order by sequence) as latest from tidegate.journal) as entry \
                where term < latest";
    assert_eq!(database.admin().value(late), "0");
}

#[test]
fn a_leader_that_is_stopped_past_its_lease_writes_nothing_more_and_serves_again() {
    let database = Database::fresh(Route::Direct);
    let first = Member::start(&database, "first");
    let second = Member::start(&database, "second");
    leads(&database, "first");
    first.hear("began first-stay");
    first.hear("done");
    first.signal(Signal::STOP);
    leads(&database, "second");
    second.hear("ended first-stay");
    first.signal(Signal::CONT);
    first.hear("dropped first-stay");
    first.hear("done first-stay");
    no_entry_of_the_deposed(&database);
    // It works for the other now.
    first.hear("began second-");
    let (of_first, of_second) = (first.finish(), second.finish());
    assert_eq!((ended(&database, "first"), ended(&database, "second")), (of_first, of_second));
    all_is_well(&database);
}

#[test]
fn when_the_leader_is_killed_another_goes_on_in_time() {
    let database = Database::fresh(Route::Direct);
    let mut first = Member::start(&database, "first");
    let second = Member::start(&database, "second");
    leads(&database, "first");
    first.hear("began first-stay");
    second.hear("done");
    first.child.kill().unwrap();
    let begin = Instant::now();
    first.child.wait().unwrap();
    leads(&database, "second");
    // What the killed one had blocks nobody for longer than its lease, and is done elsewhere.
    second.hear("ended first-stay");
    second.hear("done");
    assert!(begin.elapsed() < 5 * TAKE_OVER, "{:?}", begin.elapsed());
    let of_second = second.finish();
    assert_eq!(ended(&database, "second"), of_second);
    assert!(ended(&database, "first") > 0, "what was accepted is done");
    all_is_well(&database);
}

/// Jobs whose lease is as long as usual, and how long they took: far less, unless one was given to somebody who is gone.
async fn plain_jobs(tide: &Tidegate) -> Duration {
    let begin = Instant::now();
    let submits = (0..12).map(|number| tide.submit("plain", &format!("plain-{number}")));
    for run in tide.submit_many(submits).await {
        within(run.unwrap().result::<()>()).await.unwrap();
    }
    begin.elapsed()
}

async fn working_beside(database: &Database) -> (Tidegate, Working) {
    let tide = Tidegate::builder(&database.url).name("beside").open().await.unwrap();
    tide.action("plain", |_, _: String| async { Ok::<_, String>(()) });
    let working = tide.work(2).start().await.unwrap();
    (tide, working)
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_given_to_a_process_that_was_killed() {
    let database = tokio::task::block_in_place(|| Database::fresh(Route::Direct));
    let (tide, mut working) = working_beside(&database).await;
    tokio::task::block_in_place(|| {
        let mut helper = Member::start(&database, "helper");
        helper.child.kill().unwrap();
        helper.child.wait().unwrap();
        let admin = database.admin();
        let slots = "select coalesce(sum(io_slots), -1) from tidegate.worker where name = 'helper'";
        let deadline = Instant::now() + PATIENCE;
        while admin.value(slots) != "0" {
            assert!(Instant::now() < deadline, "it is still counted on");
            std::thread::yield_now();
        }
    });
    let took = plain_jobs(&tide).await;
    assert!(took < LEASE / 2, "{took:?}");
    within(working.stop()).await.unwrap();
    within(tide.close()).await;
    tokio::task::block_in_place(|| drop(database));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_given_to_a_leader_that_was_killed() {
    let database = tokio::task::block_in_place(|| Database::fresh(Route::Direct));
    let mut helper = tokio::task::block_in_place(|| Member::start(&database, "helper"));
    let (tide, mut working) = working_beside(&database).await;
    tokio::task::block_in_place(|| {
        leads(&database, "helper");
        helper.child.kill().unwrap();
        helper.child.wait().unwrap();
        leads(&database, "beside");
    });
    let took = plain_jobs(&tide).await;
    assert!(took < LEASE / 2, "{took:?}");
    within(working.stop()).await.unwrap();
    within(tide.close()).await;
    tokio::task::block_in_place(|| drop(database));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_comes_back_to_a_new_leader_works_again() {
    let database = tokio::task::block_in_place(|| Database::fresh(Route::Direct));
    let leader = tokio::task::block_in_place(|| Member::start(&database, "first"));
    let tide = Tidegate::builder(&database.url).name("beside").open().await.unwrap();
    let helper = tokio::task::block_in_place(|| Member::start(&database, "helper"));
    tokio::task::block_in_place(|| {
        leads(&database, "first");
        drop(leader);
        leads(&database, "beside");
    });
    let run = within(async { tide.submit("plain", &"plain").await.unwrap() }).await;
    within(run.result::<()>()).await.unwrap();
    tokio::task::block_in_place(|| helper.hear("ended plain"));
    within(tide.close()).await;
    tokio::task::block_in_place(|| drop((helper, database)));
}
