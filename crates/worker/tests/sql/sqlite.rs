//! SQLite, in files.

use super::{Asker, cause, until};
use crate::support::{failure, output, within};
use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate_core::protocol::Outcome;

/// A database that does not exist yet.
fn asker() -> (Asker, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    (Asker::new(format!("sqlite:{}", folder.path().join("data.db").display())), folder)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_type_goes_in_and_comes_out() {
    let (mut asker, _folder) = asker();
    let cases = [
        (json!(null), json!(null), "null"),
        (json!(true), json!(1), "integer"),
        (json!(-5), json!(-5), "integer"),
        (json!(9007199254740993_i64), json!(9007199254740993_i64), "integer"),
        (json!(i64::MIN), json!(i64::MIN), "integer"),
        (json!(0.1), json!(0.1), "real"),
        (json!(1e300), json!(1e300), "real"),
        (json!("it's \"é\" \\ \u{1F600}"), json!("it's \"é\" \\ \u{1F600}"), "text"),
        (json!("1234567890123456789012345678.000100"), json!("1234567890123456789012345678.000100"), "text"),
        (json!([1, null]), json!("[1,null]"), "text"),
        (json!({ "a": "b" }), json!("{\"a\":\"b\"}"), "text"),
    ];
    for (given, expected, kind) in cases {
        let row = asker.ask("select $1 as v, typeof($1) as t", json!([given])).await["rows"][0].clone();
        assert_eq!(row, json!({ "v": expected, "t": kind }), "{given}");
    }
    assert_eq!(asker.value("select x'ff006162' as v", json!([])).await, "/wBhYg==");
    assert_eq!(asker.value("select 9e999 as v", json!([])).await, "Infinity");
    let failed = asker.failure("select ? as v", json!([u64::MAX])).await;
    assert!(failed.error.contains("parameter 1: 18446744073709551615 is too large"), "{}", failed.error);
}

#[tokio::test(flavor = "multi_thread")]
async fn parameters_are_found_by_their_numbers() {
    let (mut asker, _folder) = asker();
    let cases =
        [("select ? || ? as v", "ab"), ("select $2 || $1 as v", "ba"), ("select ?2 || ?1 || ?2 as v", "bab")];
    for (query, expected) in cases {
        assert_eq!(asker.value(query, json!(["a", "b"])).await, expected, "{query}");
    }
    for (query, expected) in [
        ("select :name as v", "`:name`: parameters have numbers, such as `$1`"),
        ("select $1 as v", "the statement has 1 parameter, and `params` gives 2"),
        ("select 1; select 2", "these are several statements: put each into `transaction`"),
    ] {
        let failed = asker.failure(query, json!(["a", "b"])).await;
        assert!(failed.error.contains(expected), "{}", failed.error);
        assert_eq!(cause(&failed), None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_given_or_counted_and_refusals_have_codes() {
    let (mut asker, _folder) = asker();
    let statements = [
        ("create table person (id integer primary key)", json!([])),
        ("insert into person values (1), (2), (3)", json!([])),
        ("create table visit (person integer references person)", json!([])),
        ("update person set id = id + 10 where id > $1", json!([1])),
        ("delete from person where id = 12 returning id", json!([])),
    ];
    let done = output(asker.transaction(&statements).await);
    let counts: Vec<&Value> = done["results"].as_array().unwrap().iter().map(|one| &one["count"]).collect();
    assert_eq!(counts, [&json!(0), &json!(3), &json!(0), &json!(2), &json!(1)]);
    assert_eq!(done["results"][4]["rows"], json!([{ "id": 12 }]));
    for (query, expected, code) in [
        ("insert into visit values (99)", "FOREIGN KEY constraint failed (code 787)", "sql:787"),
        ("insert into person values (1)", "UNIQUE constraint failed: person.id (code 1555)", "sql:1555"),
        ("select * from nobody", "no such table: nobody (code 1", "sql:1"),
        ("select * form person", "near \"form\": syntax error (code 1, at byte 9)", "sql:1"),
    ] {
        let failed = asker.failure(query, json!([])).await;
        assert!(failed.error.contains(expected), "{}", failed.error);
        assert_eq!(cause(&failed), Some(code));
    }
    asker.url = json!("sqlite:/no/such/folder/data.db");
    let failed = asker.failure("select 1", json!([])).await;
    assert_eq!(cause(&failed), Some("connect"), "{}", failed.error);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_happens_as_a_whole_or_not_at_all() {
    let (mut asker, _folder) = asker();
    output(asker.outcome("create table t (id integer primary key)", json!([])).await);
    let insert = "insert into t values ($1)";
    let failed = failure(asker.transaction(&[(insert, json!([1])), (insert, json!([1]))]).await);
    assert!(failed.error.starts_with("connection `db`: statement 2: UNIQUE"), "{}", failed.error);
    assert_eq!(asker.value("select count(*) as v from t", json!([])).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_who_write_wait_for_each_other() {
    let (mut asker, _folder) = asker();
    output(asker.outcome("create table t (n integer)", json!([])).await);
    let leases: Vec<_> = (0..40)
        .map(|n| {
            let statements =
                [("insert into t values ($1)", json!([n])), ("select count(*) as v from t", json!([]))];
            let order = asker.order(&statements, true);
            asker.bench.engine.hand_out(order)
        })
        .collect();
    for _ in &leases {
        let (_, outcome) = asker.next_end().await;
        output(outcome);
    }
    assert_eq!(asker.value("select count(distinct n) as v from t", json!([])).await, 40);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_that_is_stopped_ends_and_frees_the_file() {
    let (mut asker, folder) = asker();
    asker.max = 1;
    output(asker.outcome("create table t (n integer)", json!([])).await);
    let endless =
        "insert into t with recursive c(n) as (select 1 union all select n + 1 from c) select n from c";
    let lease = asker.hand_out(endless, json!([]));
    let path = folder.path().join("data.db");
    until("it writes", async || {
        let other = rusqlite::Connection::open(&path).unwrap();
        other.execute_batch("begin immediate; rollback").is_err()
    })
    .await;
    asker.bench.engine.stop(lease);
    assert_eq!(within(asker.bench.engine.outcome(lease)).await, Outcome::Stopped);
    assert_eq!(asker.value("select count(*) as v from t", json!([])).await, 0);
    // Whoever waits for a lock is stopped, too.
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("begin immediate").unwrap();
    let lease = asker.hand_out("insert into t values (1)", json!([]));
    asker.bench.engine.stop(lease);
    assert_eq!(within(asker.bench.engine.outcome(lease)).await, Outcome::Stopped);
    other.execute_batch("rollback").unwrap();
    assert_eq!(asker.value("select count(*) as v from t", json!([])).await, 0);
}
