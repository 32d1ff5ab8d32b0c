//! What is submitted inside a transaction of the application's own.

mod support;

use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, UNIX_EPOCH};
use support::{accepted, database, drop_database, within};
use tidegate::{Error, State, Tidegate};
use tokio_postgres::NoTls;

#[tokio::test]
async fn what_is_submitted_in_a_transaction_is_there_if_the_transaction_is() {
    let database = database().await;
    let tide = Tidegate::open(&database.url).await.unwrap();
    let runs = Arc::new(AtomicU32::new(0));
    let counted = runs.clone();
    tide.action("count", move |_, by: u32| {
        let counted = counted.clone();
        async move { Ok::<_, String>(counted.fetch_add(by, Ordering::SeqCst)) }
    });
    let mut working = tide.work(4).start().await.unwrap();
    let (mut client, connection) = tokio_postgres::connect(&database.direct_url, NoTls).await.unwrap();
    tokio::spawn(connection);

    let transaction = client.transaction().await.unwrap();
    let lost = tide.submit("count", &100).in_transaction(&transaction).await.unwrap();
    transaction.rollback().await.unwrap();
    let transaction = client.transaction().await.unwrap();
    let kept =
        tide.submit("count", &1).tag("team", "x").priority(3).in_transaction(&transaction).await.unwrap();
    let wrong = tide.submit("count", &1).priority(120).in_transaction(&transaction).await;
    assert!(matches!(wrong, Err(Error::Priority(120))));
    tide.submit("count", &1_000).delay(Duration::MAX).in_transaction(&transaction).await.unwrap();
    let again = tide.submit("count", &1).key("k").in_transaction(&transaction).await.unwrap();
    let twice = tide.submit("count", &1).key("k").in_transaction(&transaction).await.unwrap();
    assert!(tide.run(kept).await.is_err(), "nothing is visible before the commit");
    transaction.commit().await.unwrap();

    let kept = within(accepted(&tide, kept)).await;
    assert_eq!(within(kept.wait()).await.unwrap().state(), State::Succeeded);
    within(within(accepted(&tide, again)).await.wait()).await.unwrap();
    assert!(tide.run(twice).await.is_err(), "the key was used before");
    assert!(tide.run(lost).await.is_err());
    assert_eq!(runs.load(Ordering::SeqCst), 2);
    within(working.stop()).await.unwrap();
    within(tide.close()).await;
    drop_database(database).await;
}

#[tokio::test]
async fn many_letters_and_large_ones_all_arrive() {
    const MIB: usize = 1024 * 1024;
    let database = database().await;
    let tide = Tidegate::open(&database.url).await.unwrap();
    let (mut client, connection) = tokio_postgres::connect(&database.direct_url, NoTls).await.unwrap();
    tokio::spawn(connection);
    let transaction = client.transaction().await.unwrap();
    let mut ids = Vec::new();
    // More than are read at once, and more bytes than are on their way at once.
    for bytes in [15 * MIB, 5 * MIB, 5 * MIB, 5 * MIB, 12 * MIB] {
        let large = tide.submit("unheard-of", &"x".repeat(bytes));
        ids.push(large.in_transaction(&transaction).await.unwrap());
    }
    let many = "select tidegate.submit('unheard-of', to_jsonb(n)) from generate_series(1, 2500) as n";
    transaction.batch_execute(many).await.unwrap();
    for time in [UNIX_EPOCH + Duration::from_secs(1 << 55), UNIX_EPOCH - Duration::from_secs(1 << 55)] {
        let odd = tide.submit("unheard-of", &()).at(time);
        ids.push(odd.in_transaction(&transaction).await.unwrap());
    }
    transaction.commit().await.unwrap();
    for id in ids {
        within(accepted(&tide, id)).await;
    }
    let left = async || {
        client.query_one("select count(*) from tidegate.mailbox", &[]).await.unwrap().get::<_, i64>(0)
    };
    within(async { while left().await != 0 {} }).await;
    within(tide.close()).await;
    drop_database(database).await;
}

#[tokio::test]
async fn a_key_means_the_same_whichever_way_it_comes() {
    let database = database().await;
    let tide = Tidegate::open(&database.url).await.unwrap();
    let (mut client, connection) = tokio_postgres::connect(&database.direct_url, NoTls).await.unwrap();
    tokio::spawn(connection);
    let content =
        json!({ "zebra": [1.50, 1e16, -0.0], "a": "\u{e9}\n", "bb": null, "b": { "y": 1, "x": i64::MIN } });

    let program = tide.submit("anything", &content).key("first by program").await.unwrap();
    let transaction = client.transaction().await.unwrap();
    let letter = tide.submit("anything", &content).key("first by program");
    let unused = letter.in_transaction(&transaction).await.unwrap();
    let letter = tide.submit("anything", &content).key("first by letter");
    let letter = letter.in_transaction(&transaction).await.unwrap();
    transaction.commit().await.unwrap();

    let letter = within(accepted(&tide, letter)).await;
    let again = tide.submit("anything", &content).key("first by letter").await.unwrap();
    assert_eq!(again.id(), letter.id());
    assert!(tide.run(unused).await.is_err(), "it was taken in before the other, and left nothing");
    assert_eq!(tide.submit("anything", &content).key("first by program").await.unwrap().id(), program.id());
    let other = tide.submit("anything", &json!({ "zebra": 1 })).key("first by letter").await;
    assert!(matches!(other, Err(Error::Refused(_))));
    within(tide.close()).await;
    drop_database(database).await;
}
