//! PostgreSQL.

use super::{Asker, cause, fresh, nobody, password, secret, server, until};
use crate::support::{failure, output, within};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tidegate_core::protocol::Outcome;
use tidegate_core::time::Span;
use tokio_postgres::{Client, NoTls};

fn url() -> String {
    server("TIDEGATE_TEST_POSTGRES")
}

/// Somebody else who looks at the server.
async fn admin() -> Client {
    let (client, connection) = tokio_postgres::connect(&url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

async fn count(admin: &Client, query: &str) -> i64 {
    admin.query_one(query, &[]).await.unwrap().get(0)
}

/// How many sessions are at a statement that holds this text.
async fn at_work(admin: &Client, marker: &str) -> i64 {
    let others = "select count(*) from pg_stat_activity where pid <> pg_backend_pid() and state = 'active'";
    count(admin, &format!("{others} and query like '%{marker}%'")).await
}

/// Types, and values that come out as they go in.
fn unchanged() -> Vec<(&'static str, Value)> {
    let digits = "123456789012345678901234567890.000100";
    vec![
        ("bool", json!(true)),
        ("int2", json!(-5)),
        ("int4", json!(2147483647)),
        ("int8", json!(9007199254740993_i64)),
        ("int8", json!(i64::MIN)),
        ("oid", json!(4294967295_u32)),
        ("float4", json!(0.1)),
        ("float8", json!(1e300)),
        ("float8", json!("NaN")),
        ("float4", json!("-Infinity")),
        ("numeric", json!(digits)),
        ("numeric", json!("-0.00001")),
        ("numeric", json!("10000")),
        ("numeric", json!("0")),
        ("numeric", json!("NaN")),
        ("numeric", json!("Infinity")),
        ("text", json!("it's \"é\" \\ {} \u{1F600}")),
        ("varchar(9)", json!("")),
        ("\"char\"", json!("c")),
        ("name", json!("a_name")),
        ("bytea", json!("/wBhYg==")),
        ("uuid", json!("01234567-89ab-cdef-0123-456789abcdef")),
        ("date", json!("2024-02-29")),
        ("date", json!("infinity")),
        ("time", json!("23:59:59.5")),
        ("timetz", json!("08:00:00-03:30")),
        ("timestamp", json!("2024-01-31T08:00:00.123456")),
        ("timestamptz", json!("1969-12-31T23:59:59.999Z")),
        ("interval", json!("P1Y2M3DT4H5M6.5S")),
        ("json", json!({ "b": [1, null, { "a": "x" }], "n": 9007199254740993_i64 })),
        ("jsonb", json!([true, "x", 1.5])),
        ("jsonb", json!("just text")),
        ("inet", json!("192.168.0.1/24")),
        ("inet", json!("::1")),
        ("cidr", json!("10.0.0.0/8")),
        ("macaddr", json!("08:00:2b:01:02:03")),
        ("bit(4)", json!("1010")),
        ("varbit", json!("101010101")),
        ("xml", json!("<a/>")),
        ("int4[]", json!([1, null, 3])),
        ("int4[]", json!([])),
        ("text[]", json!([["a \"b\"", "NULL"], ["{,}", ""]])),
        ("numeric[]", json!(["1.50", "2"])),
        ("timestamptz[]", json!(["2024-01-31T08:00:00Z"])),
        ("jsonb[]", json!([{ "a": [1] }, [2]])),
        ("SCHEMA.mood", json!("glad")),
        ("SCHEMA.small", json!(7)),
    ]
}

/// Types, what goes in, and what comes out.
fn changed() -> Vec<(&'static str, Value, Value)> {
    vec![
        ("numeric(10,2)", json!(1.5), json!("1.50")),
        ("timestamptz", json!("2024-01-31T08:00:00+02:00"), json!("2024-01-31T06:00:00Z")),
        ("char(4)", json!("ab"), json!("ab  ")),
        ("text", json!(7), json!("7")),
        ("text", json!({ "a": 1 }), json!("{\"a\":1}")),
        ("date", json!("12345-01-02"), json!("+12345-01-02")),
        ("date", json!("0044-03-15 BC"), json!("-0043-03-15")),
        ("int4[]", json!("{1,2}"), json!([1, 2])),
        ("SCHEMA.pair", json!("(7,\"a b\")"), json!({ "a": 7, "b": "a b" })),
        ("SCHEMA.pair", json!("(,x)"), json!({ "a": null, "b": "x" })),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn every_type_goes_in_and_comes_out() {
    let mut asker = Asker::new(url());
    let schema = fresh("types");
    let definitions = [
        format!("create schema {schema}"),
        format!("create type {schema}.mood as enum ('sad', 'glad')"),
        format!("create domain {schema}.small as int check (value < 10)"),
        format!("create type {schema}.pair as (a int, b text)"),
    ];
    let definitions: Vec<_> = definitions.iter().map(|text| (text.as_str(), json!([]))).collect();
    output(asker.transaction(&definitions).await);
    for (kind, value) in unchanged() {
        let query = format!("select $1::{} as v", kind.replace("SCHEMA", &schema));
        assert_eq!(asker.value(&query, json!([value])).await, value, "{kind}");
        assert_eq!(asker.value(&query, json!([null])).await, Value::Null, "{kind}");
    }
    for (kind, given, expected) in changed() {
        let query = format!("select $1::{} as v", kind.replace("SCHEMA", &schema));
        assert_eq!(asker.value(&query, json!([given])).await, expected, "{kind}");
    }
    output(asker.outcome(&format!("drop schema {schema} cascade"), json!([])).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_given_or_counted() {
    let (mut asker, table) = (Asker::new(url()), fresh("counted"));
    let made = asker.ask(&format!("create table {table} (id int primary key, name text)"), json!([])).await;
    assert_eq!(made, json!({ "rows": [], "count": 0 }));
    let insert = format!("insert into {table} select n, $1 from generate_series(1, 3) n");
    assert_eq!(asker.ask(&insert, json!(["a"])).await, json!({ "rows": [], "count": 3 }));
    let update = format!("update {table} set name = 'b' where id > $1 returning id");
    assert_eq!(
        asker.ask(&update, json!([1])).await,
        json!({ "rows": [{ "id": 2 }, { "id": 3 }], "count": 2 })
    );
    let nothing = asker.ask(&format!("select * from {table} where id = $1"), json!([9])).await;
    assert_eq!(nothing, json!({ "rows": [], "count": 0 }));
    output(asker.outcome(&format!("drop table {table}"), json!([])).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_happens_as_a_whole_or_not_at_all() {
    let (mut asker, table) = (Asker::new(url()), fresh("whole"));
    let create = format!("create table {table} (id int primary key)");
    let insert = format!("insert into {table} values ($1)");
    let select = format!("select count(*) as v from {table}");
    let done = asker.transaction(&[(&create, json!([])), (&insert, json!([1])), (&select, json!([]))]).await;
    let results = json!([
        { "rows": [], "count": 0 },
        { "rows": [], "count": 1 },
        { "rows": [{ "v": 1 }], "count": 1 },
    ]);
    assert_eq!(output(done), json!({ "results": results }));
    let failed = failure(asker.transaction(&[(&insert, json!([2])), (&insert, json!([1]))]).await);
    assert!(failed.error.starts_with("connection `db`: statement 2: duplicate key"), "{}", failed.error);
    assert_eq!(cause(&failed), Some("sql:23505"));
    assert_eq!(asker.value(&select, json!([])).await, 1);
    output(asker.outcome(&format!("drop table {table}"), json!([])).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_server_says_is_told_with_its_code_and_place() {
    let mut asker = Asker::new(url());
    let cases = [
        (
            "select * from nobodys_table",
            json!([]),
            "connection `db`: relation \"nobodys_table\" does not exist (SQLSTATE 42P01, at character 15)",
            Some("sql:42P01"),
        ),
        (
            "select $1::int as v",
            json!(["x"]),
            "invalid input syntax for type integer: \"x\"",
            Some("sql:22P02"),
        ),
        ("select 1; select 2", json!([]), "multiple commands", Some("sql:42601")),
        ("select $1::int as v", json!([]), "the statement has 1 parameter, and `params` gives 0", None),
        ("select $1::int as v", json!([[1]]), "parameter 1: a list cannot become `int4`", None),
        (
            "select 'a b'::tsvector as v",
            json!([]),
            "column `v` is of type `tsvector`, which cannot be read",
            None,
        ),
        ("select 1 as v, 2 as v", json!([]), "two columns are called `v`", None),
        (
            "select repeat('x', 1000000) as v from generate_series(1, 80)",
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
    asker.url = json!(format!("postgres://me:hunter22@{}/db", nobody()));
    let failed = asker.failure("select 1", json!([])).await;
    assert!(failed.error.starts_with("connection `db`: no connection: "), "{}", failed.error);
    assert_eq!(cause(&failed), Some("connect"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_that_is_stopped_ends_in_the_server() {
    let (mut asker, admin, marker) = (Asker::new(url()), admin().await, fresh("stopped"));
    let query = format!("select pg_sleep(600) /* {marker} */");
    let lease = asker.hand_out(&query, json!([]));
    until("it runs", async || at_work(&admin, &marker).await == 1).await;
    asker.bench.engine.stop(lease);
    assert_eq!(within(asker.bench.engine.outcome(lease)).await, Outcome::Stopped);
    until("it has ended", async || at_work(&admin, &marker).await == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_whose_lease_is_over_ends_in_the_server_and_leaves_nothing_behind() {
    let (mut asker, admin, marker) = (Asker::new(url()), admin().await, fresh("leased"));
    asker.max = 1;
    output(asker.outcome(&format!("create table {marker} (id int)"), json!([])).await);
    let insert = format!("insert into {marker} values (1)");
    let sleep = format!("select pg_sleep(600) /* {marker} */");
    asker.bench.engine.lease = Span::seconds(1);
    asker.bench.engine.stop_renewing();
    let order = asker.order(&[(&insert, json!([])), (&sleep, json!([]))], true);
    asker.bench.engine.hand_out(order);
    until("it runs", async || at_work(&admin, &marker).await == 1).await;
    until("it has ended", async || at_work(&admin, &marker).await == 0).await;
    until("nothing is left open", async || {
        let open = "select count(*) from pg_stat_activity where state like 'idle in transaction%'";
        count(&admin, &format!("{open} and query like '%{marker}%'")).await == 0
    })
    .await;
    assert_eq!(count(&admin, &format!("select count(*) from {marker}")).await, 0);
    admin.batch_execute(&format!("drop table {marker}")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn there_are_never_more_connections_than_allowed_and_they_are_used_again() {
    let (mut asker, admin, marker) = (Asker::new(url()), admin().await, fresh("bounded"));
    asker.max = 2;
    let key = std::process::id();
    admin.batch_execute(&format!("select pg_advisory_lock({key})")).await.unwrap();
    let query = format!("select pg_advisory_xact_lock_shared({key}), pg_backend_pid() as pid /* {marker} */");
    let leases: BTreeSet<_> = (0..6).map(|_| asker.hand_out(&query, json!([]))).collect();
    until("two of them wait", async || at_work(&admin, &marker).await == 2).await;
    let connected = "select count(*) from pg_stat_activity where query like";
    assert_eq!(count(&admin, &format!("{connected} '%{marker}%' and pid <> pg_backend_pid()")).await, 2);
    admin.batch_execute(&format!("select pg_advisory_unlock({key})")).await.unwrap();
    let (mut ended, mut pids) = (BTreeSet::new(), BTreeSet::new());
    for _ in &leases {
        let (lease, outcome) = asker.next_end().await;
        ended.insert(lease);
        pids.insert(output(outcome)["rows"][0]["pid"].as_i64().unwrap());
    }
    assert_eq!((ended, pids.len()), (leases, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_forgets_what_was_done_to_it() {
    let mut asker = Asker::new(url());
    asker.max = 1;
    let pid = asker.value("select pg_backend_pid() as v", json!([])).await;
    let key = std::process::id() + 1;
    for statement in [
        "set search_path to nowhere".to_owned(),
        "create temporary table leftover (id int)".to_owned(),
        format!("select pg_advisory_lock({key}) as v"),
        "begin".to_owned(),
    ] {
        asker.ask(&statement, json!([])).await;
    }
    let begun = format!("select count(*) from pg_stat_activity where pid = {pid} and state <> 'idle'");
    let admin = admin().await;
    until("no transaction is left open", async || count(&admin, &begun).await == 0).await;
    let state = "select current_setting('search_path') || ' ' || (to_regclass('leftover') is null)
        || ' ' || (select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()) as v";
    assert_eq!(asker.value(state, json!([])).await, "\"$user\", public true 0");
    assert_eq!(asker.value("select pg_backend_pid() as v", json!([])).await, pid, "it is the same one");
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_and_passwords_are_shown_to_nobody() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let (url, password) = (url(), password(&url()));
    let mut asker = Asker::new(secret(&file, &url));
    let shown = asker.ask("select $1::text as v, $2::text as w", json!([url, password])).await;
    assert_eq!(shown, json!({ "rows": [{ "v": "***", "w": "***" }], "count": 1 }));
    let wrong = url.replace(&password, "hunter%32%32");
    let unknown = format!("postgres://me:hunter22@{}/db?password=hunter22&no_such_option=hunter22", nobody());
    for wrong in [wrong.clone(), unknown, url.replace("postgres://", "oracle://")] {
        for url in [json!(wrong), secret(&file, &wrong)] {
            asker.url = url;
            let failed = asker.failure("select 1", json!([])).await;
            assert!(
                !failed.error.contains("hunter22") && !failed.error.contains(&password),
                "{}",
                failed.error
            );
        }
    }
    asker.url = json!(wrong);
    let failed = asker.failure("select 'hunter22'", json!([])).await;
    assert_eq!(cause(&failed), Some("sql:28P01"), "{}", failed.error);
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_encrypted_where_that_is_asked_for() {
    let certificate = server("TIDEGATE_TEST_CERTIFICATE");
    let query = "select ssl as v from pg_stat_ssl where pid = pg_backend_pid()";
    let mut asker = Asker::new(format!("{}?sslmode=require&sslrootcert={certificate}", url()));
    assert_eq!(asker.value(query, json!([])).await, true);
    let (admin, marker) = (admin().await, fresh("encrypted"));
    let lease = asker.hand_out(&format!("select pg_sleep(600) /* {marker} */"), json!([]));
    until("it runs", async || at_work(&admin, &marker).await == 1).await;
    asker.bench.engine.stop(lease);
    assert_eq!(within(asker.bench.engine.outcome(lease)).await, Outcome::Stopped);
    until("it has ended", async || at_work(&admin, &marker).await == 0).await;
    asker.url = json!(format!("{}?sslmode=require", url()));
    let untrusted = asker.failure(query, json!([])).await;
    assert_eq!(cause(&untrusted), Some("connect"), "{}", untrusted.error);
    asker.url = json!(url());
    assert_eq!(asker.value(query, json!([])).await, false);
}
