//! History that is deleted on demand, and copies of a store.

mod support;

use std::time::{Duration, SystemTime, UNIX_EPOCH};
use support::{database, drop_database, within};
use tidegate::{BackupError, Error, Retention, RunId, State, Tidegate};
use tidegate_core::ids::{Name, NodeId};
use tidegate_core::protocol::{Body, JobBody, Life, NodeRow, Write};
use tidegate_core::time::{Moment, Span};
use tidegate_store::{Commit, Entry, PostgresStore, SqliteStore, Store};
use tokio_postgres::NoTls;

const HOUR: Duration = Duration::from_secs(60 * 60);

/// A job that has ended.
fn ended_job(number: u64, at: Moment) -> Write {
    let body = JobBody {
        id: RunId(number.into()),
        action: Name::new("old"),
        key: None,
        tags: Vec::new(),
        start_by: None,
        idempotency: None,
    };
    Write::NodeAdded(Box::new(NodeRow {
        node: NodeId(number),
        parent: None,
        root: number,
        priority: 0,
        accepted: at,
        body: Body::Job(body),
        payload: None,
        life: Life { ended: Some(at), ..Life::new(State::Cancelled) },
    }))
}

/// As another process left it: three jobs, which ended two hours, one and a half, and no time ago.
fn leave_history(mut store: impl Store) {
    let now = Moment::default() + Span::from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap());
    let ago = |minutes| now - Span::minutes(minutes);
    let writes = vec![ended_job(1, ago(120)), ended_job(2, ago(90)), ended_job(3, now)];
    let term = store.lead(&Name::new("before"), None, Span::seconds(4)).unwrap().unwrap().term;
    let entry = Entry { sequence: 1, term, batch: 1, now, next: 4, letters: vec![], digest: None, writes };
    assert_eq!(store.commit(&entry).unwrap(), Commit::Done);
    store.resign(term).unwrap();
}

async fn is_there(tide: &Tidegate, number: u64) -> bool {
    match tide.run(RunId(number.into())).await {
        Ok(_) => true,
        Err(Error::UnknownRun(_)) => false,
        Err(error) => panic!("{error}"),
    }
}

async fn prunes_what_is_old(tide: &Tidegate) {
    assert_eq!(tide.prune(100 * HOUR).await.unwrap(), 0);
    // None of them succeeded.
    let failures = Retention { succeeded: Span::ZERO, failed: Span::hours(100) };
    assert_eq!(tide.prune(failures).await.unwrap(), 0);
    assert_eq!(tide.prune(HOUR + HOUR / 2 + HOUR / 4).await.unwrap(), 1);
    assert!(!is_there(tide, 1).await && is_there(tide, 2).await);
    assert_eq!(tide.prune(Duration::ZERO).await.unwrap(), 1, "what ended a moment ago stays");
    assert!(!is_there(tide, 2).await && is_there(tide, 3).await);
}

#[tokio::test]
async fn what_ended_long_ago_goes_when_it_is_asked_to() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("test.db");
    leave_history(SqliteStore::open(&path).unwrap());
    let tide = Tidegate::open(&format!("sqlite:{}", path.display())).await.unwrap();
    within(prunes_what_is_old(&tide)).await;
    within(tide.close()).await;
}

#[tokio::test]
async fn any_process_that_shares_a_store_may_prune_it() {
    let database = database().await;
    let url = database.url.clone();
    let left = tokio::task::spawn_blocking(move || leave_history(PostgresStore::open(&url).unwrap()));
    left.await.unwrap();
    let leads = Tidegate::open(&database.url).await.unwrap();
    let follows = Tidegate::open(&database.url).await.unwrap();
    within(prunes_what_is_old(&follows)).await;
    within(follows.close()).await;
    within(leads.close()).await;
    drop_database(database).await;
}

/// Somebody makes an index, which locks the history against those who would delete from it.
#[tokio::test]
async fn history_that_others_have_locked_is_left_alone_and_nobody_waits_for_it() {
    let database = database().await;
    let place = database.url.clone();
    tokio::task::spawn_blocking(move || leave_history(PostgresStore::open(&place).unwrap())).await.unwrap();
    let tide = Tidegate::open(&database.url).await.unwrap();
    let (mut client, connection) = tokio_postgres::connect(&database.direct_url, NoTls).await.unwrap();
    tokio::spawn(connection);
    let locking = client.transaction().await.unwrap();
    locking.batch_execute("lock table tidegate.ended_task in share mode").await.unwrap();
    let locked = within(tide.prune(HOUR)).await;
    assert!(locked.as_ref().is_err_and(Error::may_pass), "{locked:?}");
    within(async { tide.submit("old", &()).await.unwrap() }).await;
    locking.rollback().await.unwrap();
    within(prunes_what_is_old(&tide)).await;
    within(tide.close()).await;
    drop_database(database).await;
}

#[tokio::test]
async fn a_copy_is_a_store_that_goes_on_where_it_was_taken() {
    let directory = tempfile::tempdir().unwrap();
    let address = |name| format!("sqlite:{}", directory.path().join(name).display());
    let tide = Tidegate::open(&address("test.db")).await.unwrap();
    let run = tide.submit("hello", &()).await.unwrap();
    let copy = directory.path().join("copy.db");
    within(tide.backup(&copy)).await.unwrap();
    let again = within(tide.backup(&copy)).await;
    assert!(matches!(&again, Err(Error::Backup(BackupError::Exists(path))) if *path == copy), "{again:?}");
    assert!(!again.unwrap_err().may_pass());
    within(tide.close()).await;

    let copied = Tidegate::open(&address("copy.db")).await.unwrap();
    copied.action("hello", |_, ()| async { Ok::<_, String>("hello") });
    let mut working = copied.work(1).start().await.unwrap();
    let run = copied.run(run.id()).await.unwrap();
    assert_eq!(within(run.result::<String>()).await.unwrap(), "hello");
    within(working.stop()).await.unwrap();
    within(copied.close()).await;
}

#[tokio::test]
async fn stores_that_are_not_files_say_how_they_are_backed_up() {
    let directory = tempfile::tempdir().unwrap();
    let database = database().await;
    for (address, expected) in [
        ("memory:", "a store in memory has nothing to back up"),
        (&database.url, "a store on PostgreSQL is backed up with the database: `pg_dump --schema=tidegate`"),
    ] {
        let tide = Tidegate::open(address).await.unwrap();
        let error = within(tide.backup(directory.path().join("copy"))).await.unwrap_err();
        assert_eq!((error.to_string().as_str(), error.may_pass()), (expected, false));
        within(tide.close()).await;
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    drop_database(database).await;
}
