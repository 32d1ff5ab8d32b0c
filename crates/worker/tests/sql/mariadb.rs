//! MariaDB, and so MySQL.

use super::{Asker, cause, fresh, nobody, password, secret, server, until};
use crate::support::{failure, output, within};
use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tidegate_core::protocol::Outcome;
use tidegate_core::time::Span;

fn url() -> String {
    server("TIDEGATE_TEST_MARIADB")
}

/// Somebody else who looks at the server.
async fn admin() -> Conn {
    Conn::from_url(url()).await.unwrap()
}

async fn count(admin: &mut Conn, query: &str) -> u64 {
    admin.query_first(query).await.unwrap().unwrap()
}

/// How many sessions are at a statement that holds this text.
async fn at_work(admin: &mut Conn, marker: &str) -> u64 {
    let others = "select count(*) from information_schema.processlist where id <> connection_id()";
    count(admin, &format!("{others} and info like '%{marker}%'")).await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_type_goes_in_and_comes_out() {
    let (mut asker, table) = (Asker::new(url()), fresh("types"));
    let cases = [
        ("boolean", json!(true), json!(1)),
        ("tinyint", json!(-5), json!(-5)),
        ("smallint unsigned", json!(65535), json!(65535)),
        ("int", json!(-2147483648), json!(-2147483648)),
        ("bigint", json!(9007199254740993_i64), json!(9007199254740993_i64)),
        ("bigint", json!(i64::MIN), json!(i64::MIN)),
        ("bigint unsigned", json!(u64::MAX), json!(u64::MAX)),
        ("float", json!(0.1), json!(0.1)),
        ("double", json!(1e300), json!(1e300)),
        (
            "decimal(40,6)",
            json!("1234567890123456789012345678.000100"),
            json!("1234567890123456789012345678.000100"),
        ),
        ("decimal(10,2)", json!(1.5), json!("1.50")),
        ("varchar(40)", json!("it's \"é\" \\ \u{1F600}"), json!("it's \"é\" \\ \u{1F600}")),
        ("char(4)", json!("ab"), json!("ab")),
        ("text", json!({ "a": [1] }), json!("{\"a\":[1]}")),
        ("json", json!({ "a": [1, null] }), json!("{\"a\":[1,null]}")),
        ("enum('sad','glad')", json!("glad"), json!("glad")),
        ("set('a','b')", json!("a,b"), json!("a,b")),
        ("varbinary(9)", json!("ab"), json!("YWI=")),
        ("blob", json!(""), json!("")),
        ("bit(10)", json!(513), json!(513)),
        ("date", json!("2024-02-29"), json!("2024-02-29")),
        ("time", json!("23:59:59"), json!("23:59:59")),
        ("time(3)", json!("-30:00:00.5"), json!("-30:00:00.5")),
        ("datetime(6)", json!("2024-01-31T08:00:00.123456"), json!("2024-01-31T08:00:00.123456")),
        ("datetime", json!("2024-01-31T08:00:00"), json!("2024-01-31T08:00:00")),
        ("timestamp(3) null", json!("2024-01-31T08:00:00.5"), json!("2024-01-31T08:00:00.5Z")),
        ("year", json!(2024), json!(2024)),
        (
            "uuid",
            json!("123e4567-e89b-42d3-a456-426655440000"),
            json!("123e4567-e89b-42d3-a456-426655440000"),
        ),
    ];
    let insert = format!("insert into {table} values (1, ?), (2, ?)");
    let select = format!("select v from {table} order by id");
    for (kind, given, expected) in cases {
        output(asker.outcome(&format!("create table {table} (id int, v {kind})"), json!([])).await);
        assert_eq!(
            asker.ask(&insert, json!([given, null])).await,
            json!({ "rows": [], "count": 2 }),
            "{kind}"
        );
        let rows = asker.ask(&select, json!([])).await;
        assert_eq!(rows, json!({ "rows": [{ "v": expected }, { "v": null }], "count": 2 }), "{kind}");
        output(asker.outcome(&format!("drop table {table}"), json!([])).await);
    }
    assert_eq!(asker.value("select from_base64(?) as v", json!(["/wBhYg=="])).await, "/wBhYg==");
    assert_eq!(asker.value("select ? as v", json!([null])).await, Value::Null);
    let moment = "select timestamp(trim(trailing 'Z' from ?)) as v";
    assert_eq!(asker.value(moment, json!(["2024-01-31T08:00:00Z"])).await, "2024-01-31T08:00:00");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_happens_as_a_whole_or_not_at_all() {
    let (mut asker, table) = (Asker::new(url()), fresh("whole"));
    output(asker.outcome(&format!("create table {table} (id int primary key)"), json!([])).await);
    let (insert, select) =
        (format!("insert into {table} values (?)"), format!("select count(*) as v from {table}"));
    let done = asker.transaction(&[(&insert, json!([1])), (&select, json!([]))]).await;
    let results = json!([{ "rows": [], "count": 1 }, { "rows": [{ "v": 1 }], "count": 1 }]);
    assert_eq!(output(done), json!({ "results": results }));
    let failed = failure(asker.transaction(&[(&insert, json!([2])), (&insert, json!([1]))]).await);
    assert!(failed.error.starts_with("connection `db`: statement 2: Duplicate entry"), "{}", failed.error);
    assert_eq!(cause(&failed), Some("sql:23000"));
    assert_eq!(asker.value(&select, json!([])).await, 1);
    output(asker.outcome(&format!("drop table {table}"), json!([])).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_server_says_is_told_with_its_code() {
    let mut asker = Asker::new(url());
    let cases = [
        ("select * from nobodys_table", json!([]), "(error 1146, SQLSTATE 42S02)", Some("sql:42S02")),
        ("signal sqlstate '45000' set message_text = 'no'", json!([]), "no (error 1644", Some("sql:45000")),
        ("select ? as v", json!([]), "the statement has 1 parameter, and `params` gives 0", None),
        ("select 1 as v, 2 as v", json!([]), "two columns are called `v`", None),
        ("select point(1, 2) as v", json!([]), "column `v` is of type `MYSQL_TYPE_GEOMETRY`", None),
        (
            "select repeat('x', 1000000) as v from seq_1_to_80",
            json!([]),
            "the rows are larger than 64 MiB: ask for fewer of them with `limit`",
            None,
        ),
    ];
    for (query, params, expected, code) in cases {
        let failed = asker.failure(query, params).await;
        assert!(failed.error.contains(expected), "{query}: {}", failed.error);
        assert_eq!(cause(&failed), code, "{query}");
        assert_eq!(asker.value("select 1 as v", json!([])).await, 1, "the next one works");
    }
    asker.url = json!(format!("mysql://me:hunter22@{}/db", nobody()));
    let failed = asker.failure("select 1", json!([])).await;
    assert!(failed.error.starts_with("connection `db`: no connection: "), "{}", failed.error);
    assert_eq!(cause(&failed), Some("connect"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_that_is_stopped_ends_in_the_server() {
    let (mut asker, mut admin, marker) = (Asker::new(url()), admin().await, fresh("stopped"));
    let lease = asker.hand_out(&format!("select sleep(600) /* {marker} */"), json!([]));
    until("it runs", async || at_work(&mut admin, &marker).await == 1).await;
    asker.bench.engine.stop(lease);
    assert_eq!(within(asker.bench.engine.outcome(lease)).await, Outcome::Stopped);
    until("it has ended", async || at_work(&mut admin, &marker).await == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_whose_lease_is_over_ends_in_the_server_and_leaves_nothing_behind() {
    let (mut asker, mut admin, table) = (Asker::new(url()), admin().await, fresh("leased"));
    output(asker.outcome(&format!("create table {table} (id int)"), json!([])).await);
    let insert = format!("insert into {table} values (1)");
    let sleep = format!("select sleep(600) /* {table} */");
    asker.bench.engine.lease = Span::seconds(1);
    asker.bench.engine.stop_renewing();
    let order = asker.order(&[(&insert, json!([])), (&sleep, json!([]))], true);
    asker.bench.engine.hand_out(order);
    until("it runs", async || at_work(&mut admin, &table).await == 1).await;
    until("it has ended", async || at_work(&mut admin, &table).await == 0).await;
    // Whoever is inside a transaction keeps the table from being locked.
    within(admin.query_drop(format!("lock tables {table} write"))).await.unwrap();
    assert_eq!(count(&mut admin, &format!("select count(*) from {table}")).await, 0);
    admin.query_drop(format!("drop table {table}")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn there_are_never_more_connections_than_allowed_and_they_are_used_again() {
    let (mut asker, mut admin, marker) = (Asker::new(url()), admin().await, fresh("bounded"));
    asker.max = 2;
    admin.query_drop(format!("do get_lock('{marker}', 60)")).await.unwrap();
    // Whoever gets the lock gives it away at once.
    let query = format!(
        "select get_lock('{marker}', 60) as got, release_lock('{marker}') as gone, connection_id() as id"
    );
    let leases: BTreeSet<_> = (0..6).map(|_| asker.hand_out(&query, json!([]))).collect();
    until("two of them wait", async || at_work(&mut admin, &marker).await == 2).await;
    admin.query_drop(format!("do release_lock('{marker}')")).await.unwrap();
    let (mut ended, mut ids) = (BTreeSet::new(), BTreeSet::new());
    for _ in &leases {
        let (lease, outcome) = asker.next_end().await;
        ended.insert(lease);
        ids.insert(output(outcome)["rows"][0]["id"].as_i64().unwrap());
    }
    assert_eq!((ended, ids.len()), (leases, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_forgets_what_was_done_to_it() {
    let mut asker = Asker::new(url());
    asker.max = 1;
    let id = asker.value("select connection_id() as v", json!([])).await;
    let lock = fresh("forgotten");
    for statement in ["set @mine = 7", "set time_zone = '+05:00'", "start transaction"] {
        asker.ask(statement, json!([])).await;
    }
    asker.ask("select get_lock(?, 0) as v", json!([lock])).await;
    let state =
        "select concat_ws(' ', @mine is null, @@time_zone, @@in_transaction, is_used_lock(?) is null) as v";
    assert_eq!(asker.value(state, json!([lock])).await, "1 +00:00 0 1");
    assert_eq!(asker.value("select connection_id() as v", json!([])).await, id, "it is the same one");
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_and_passwords_are_shown_to_nobody() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let (url, password) = (url(), password(&url()));
    let mut asker = Asker::new(secret(&file, &url));
    let shown = asker.ask("select ? as v, ? as w", json!([url, password])).await;
    assert_eq!(shown, json!({ "rows": [{ "v": "***", "w": "***" }], "count": 1 }));
    let wrong = url.replace(&password, "hunter22");
    for wrong in [wrong.clone(), format!("mysql://me:hunter22@{}/db?no_such_option=hunter22", nobody())] {
        for url in [json!(wrong), secret(&file, &wrong)] {
            asker.url = url;
            let failed = asker.failure("select 1", json!([])).await;
            assert!(!failed.error.contains("hunter22"), "{}", failed.error);
        }
    }
    asker.url = json!(wrong);
    let failed = asker.failure("select 1", json!([])).await;
    assert_eq!(cause(&failed), Some("sql:28000"), "{}", failed.error);
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_encrypted_where_that_is_asked_for() {
    let certificate = server("TIDEGATE_TEST_CERTIFICATE");
    let query = "select variable_value <> '' as v from information_schema.session_status where variable_name = 'Ssl_cipher'";
    let mut asker = Asker::new(format!("{}?require_ssl=true&sslrootcert={certificate}", url()));
    assert_eq!(asker.value(query, json!([])).await, 1);
    asker.url = json!(format!("{}?require_ssl=true", url()));
    let untrusted = asker.failure(query, json!([])).await;
    assert_eq!(cause(&untrusted), Some("connect"), "{}", untrusted.error);
    asker.url = json!(url().replace("mysql://", "mariadb://"));
    assert_eq!(asker.value(query, json!([])).await, 0);
}
