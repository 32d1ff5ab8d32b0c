//! `tidegate prune` and `tidegate backup`, from the outside.

use crate::database::{Database, Route};
use crate::support::{Test, golden};
use tidegate::Tidegate;
use tidegate_core::ids::{NodeId, RunId};
use tidegate_core::protocol::{Body, JobBody, Life, NodeRow, Write};
use tidegate_core::state::State;
use tidegate_core::time::{Moment, Span};
use tidegate_store::{Commit, Entry, PostgresStore, Reads, Sought, SqliteStore, Store, Term};

const FLOW: &str = "flow: quick\nsteps: { one: { run: [echo] } }\n";

fn after_two_runs() -> Test {
    let test = Test::new().file("quick.yaml", FLOW).args(["run", "quick.yaml", "-q"]);
    test.run();
    test.run();
    test
}

#[test]
fn what_ended_long_ago_goes_and_a_dry_run_only_counts() {
    let mut said = String::new();
    let mut test = after_two_runs();
    for args in [
        &["prune", "--older-than", "30d"][..],
        &["prune", "--older-than", "0s", "--dry-run"],
        &["prune", "--older-than", "0s", "-q"],
        &["prune", "--older-than", "0s", "--dry-run"],
    ] {
        test = test.args(args.iter().copied());
        let outcome = test.run();
        assert_eq!(outcome.stdout, "");
        said += &outcome.stderr;
    }
    golden("prune", &said);
}

/// A store in which jobs ended so many days ago, and in these states.
fn with_history(history: &[(u64, State, u64)]) -> Test {
    let test = Test::new();
    std::fs::create_dir(test.path(".tidegate")).unwrap();
    let mut store = SqliteStore::open(test.path(".tidegate/state.db")).unwrap();
    let Term { term, clock: now, .. } = store.lead(&"before".into(), None, Span::ZERO).unwrap().unwrap();
    let writes =
        history.iter().map(|(number, state, days)| ended_job(*number, *state, now - Span::days(*days)));
    let (writes, next) = (writes.collect(), history.len() as u64 + 1);
    let entry = Entry { sequence: 1, term, batch: 1, now, next, letters: vec![], digest: None, writes };
    assert_eq!(store.commit(&entry), Ok(Commit::Done));
    store.resign(term).unwrap();
    test
}

fn ended_job(number: u64, state: State, at: Moment) -> Write {
    let body = JobBody {
        id: RunId(number.into()),
        action: "old".into(),
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
        life: Life { ended: Some(at), ..Life::new(state) },
    }))
}

#[test]
fn failures_can_be_kept_longer_than_the_rest() {
    let mut test =
        with_history(&[(1, State::Failed, 10), (2, State::Succeeded, 10), (3, State::Cancelled, 10)]);
    let mut said = String::new();
    for args in [
        &["--older-than", "7d", "--failures-older-than", "90d", "--dry-run"][..],
        &["--older-than", "7d", "--failures-older-than", "forever", "--dry-run"],
        &["--failures-older-than", "7d", "--dry-run"],
        &["--failures-older-than", "90d"],
        &["--older-than", "7d", "--failures-older-than", "90d"],
        &["--older-than", "7d", "--failures-older-than", "8d"],
    ] {
        test = test.args(["prune"].into_iter().chain(args.iter().copied()));
        said += &test.run().stderr;
    }
    test = test.args(["prune", "--failures-older-than", "forever"]).status(2);
    said += &test.run().stderr;
    golden("prune-failures", &said);
}

#[test]
fn a_run_deletes_what_is_older_than_it_is_kept_by_default() {
    let flow = "flow: held\nsteps: { one: { run: [cat, gate] } }\n";
    let history = [(1, State::Succeeded, 31), (2, State::Failed, 31), (3, State::Succeeded, 29)];
    let test = with_history(&history).file("held.yaml", flow).args(["run", "held.yaml"]);
    let gate = test.pipe("gate");
    let mut run = test.start();
    run.until("one");
    let mut reader = SqliteStore::open_reader(test.path(".tidegate/state.db")).unwrap();
    let mut left = || {
        let found = reader.find(&[1, 2, 3].map(|number| Sought::Id(RunId(number)))).unwrap();
        found.into_iter().flatten().map(|found| found.node.0).collect::<Vec<_>>()
    };
    // It is asked for over and over, because nobody is told when it is gone.
    while left().contains(&1) {}
    assert_eq!(left(), [2, 3]);
    gate.release();
    run.finish();
}

#[test]
fn a_run_removes_old_diaries_of_runs_that_are_gone() {
    let test = after_two_runs();
    let orphan = test.path(".tidegate/state.db.logs/run_00000000000000000000000001.jsonl");
    std::fs::write(&orphan, "").unwrap();
    test.run();
    assert!(!orphan.exists());
    assert_eq!(std::fs::read_dir(test.path(".tidegate/state.db.logs")).unwrap().count(), 3);
}

#[test]
fn a_database_is_pruned_while_others_work_in_it() {
    let database = Database::fresh(Route::Direct);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let tide = runtime.block_on(two_jobs_end(&database.url)).unwrap();
    database.admin().run("update tidegate.ended_task set ended = ended - interval '1 hour' where node = 1");
    let mut said = String::new();
    let mut test = Test::new();
    for args in [&["--older-than", "30m", "--dry-run"][..], &["--older-than", "0s"], &["--older-than", "0s"]]
    {
        test = test.args(["prune", "--store", &database.url].into_iter().chain(args.iter().copied()));
        said += &test.run().stderr;
    }
    golden("prune-database", &said);
    runtime.block_on(tide.close());
}

/// Both are in the tables then.
async fn two_jobs_end(url: &str) -> Result<Tidegate, tidegate::Error> {
    let tide = Tidegate::open(url).await?;
    tide.action("echo", |_, word: String| async move { Ok::<_, String>(word) });
    let mut working = tide.work(1).start().await?;
    for word in ["one", "two"] {
        tide.submit("echo", &word).await?.wait().await?;
    }
    working.stop().await?;
    tokio::task::spawn_blocking({
        let url = url.to_owned();
        move || PostgresStore::open(&url).and_then(|mut store| store.load().map(drop))
    })
    .await
    .expect("it loads")
    .map_err(tidegate::Error::Store)?;
    Ok(tide)
}

#[test]
fn a_database_that_is_no_store_or_not_there_is_said_without_its_password() {
    let database = Database::fresh(Route::Direct);
    let test = Test::new().args(["prune", "--older-than", "30d", "--store", &database.url]).status(5);
    assert!(test.run().stderr.contains("it is not a store of Tidegate"));
    let nowhere = "postgres://me:secret@127.0.0.1:1/none";
    let test = test.args(["prune", "--older-than", "30d", "--store", nowhere]).status(5);
    golden("prune-nowhere", &test.run().stderr);
}

#[test]
fn what_cannot_be_pruned_is_said() {
    let test = Test::new().args(["prune", "--older-than", "30d"]).status(3);
    golden("prune-no-store", &test.run().stderr);
    let test = test.args(["prune", "--older-than", "soon"]).status(2);
    assert!(test.run().stderr.contains("write it as 30d, 12h or 90m"));
    let test = test.args(["prune"]).status(2);
    assert!(test.run().stderr.contains("--older-than"));
}

#[test]
fn a_database_is_not_taken_for_a_file_and_nobody_sees_who_may_enter() {
    let mut test = Test::new().file("quick.yaml", FLOW);
    let mut said = String::new();
    for url in
        ["postgres://me:secret@127.0.0.1:1/none", "postgresql://127.0.0.1:1/none?user=me&password=secret"]
    {
        for args in [&["run", "quick.yaml"][..], &["run", "--resume"], &["why"], &["backup", "copy.db"]] {
            test = test.args(args.iter().copied().chain(["--store", url])).status(2);
            said += &test.run().stderr;
        }
        test = test.args(["prune", "--older-than", "30d", "--store", url]).status(5);
        said += &test.run().stderr;
    }
    golden("not-a-file", &said);
    assert!(!said.contains("secret"), "{said}");
    let left: Vec<_> =
        std::fs::read_dir(test.directory()).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(left, ["quick.yaml"]);
}

#[test]
fn a_file_may_be_named_as_programs_name_it() {
    let test =
        Test::new().file("quick.yaml", FLOW).args(["run", "quick.yaml", "-q", "--store", "sqlite:here.db"]);
    test.run();
    assert!(test.path("here.db").is_file());
    let test = test.args(["why", "--store", "sqlite:here.db"]);
    assert_eq!(test.run().stderr, "nothing waits\n");
    let test = test.args(["backup", "copy.db", "--store", "sqlite:here.db"]);
    assert_eq!(test.run().stderr, "here.db copied to copy.db\n");
}

#[test]
fn a_store_under_a_run_is_copied_and_counted_but_not_pruned() {
    let flow = "flow: held\nsteps: { one: { run: [cat, gate] } }\n";
    let test = Test::new().file("held.yaml", flow).args(["run", "held.yaml"]);
    let gate = test.pipe("gate");
    let mut run = test.start();
    run.until("one");

    let test = test.args(["prune", "--older-than", "30d"]).status(5);
    golden("prune-in-use", &test.run().stderr);
    let test = test.args(["prune", "--older-than", "30d", "--dry-run"]);
    test.run();
    let test = test.args(["backup", "copy.db"]);
    golden("backup", &test.run().stderr);
    gate.release();
    run.finish();

    let test = test.args(["why", "--store", "copy.db"]);
    test.run();
    let test = test.args(["run", "--resume", "--store", "copy.db"]);
    let again = test.start();
    gate.release();
    assert!(again.finish().contains("succeeded"), "the copy is a store");
}

#[test]
fn a_file_is_replaced_only_if_told_to() {
    let test = after_two_runs().file("copy.db", "precious").args(["backup", "copy.db"]).status(4);
    golden("backup-exists", &test.run().stderr);
    assert_eq!(std::fs::read(test.path("copy.db")).unwrap(), b"precious");
    let test = test.args(["backup", "copy.db", "--force", "-q"]);
    assert_eq!(test.run().stderr, "");
    let test = test.args(["why", "--store", "copy.db"]);
    assert_eq!(test.run().stderr, "nothing waits\n");

    let test = test.args(["backup", ".tidegate/state.db", "--force"]).status(4);
    golden("backup-itself", &test.run().stderr);
    let test = test.args(["backup", "no/such/copy.db"]).status(5);
    golden("backup-not-written", &test.run().stderr);
    let test = test.args(["backup", "copy.db", "--store", "none.db"]).status(3);
    golden("backup-no-store", &test.run().stderr);
}
