//! Plain SQL over one connection to PostgreSQL, with its default durability: every job is inserted, then updated when it
//! begins and when it ends, in groups, by somebody who knows which.

use super::Halves;
use anyhow::{Result, ensure};
use std::time::Instant;
use tokio_postgres::{Client, NoTls, Statement};

/// A payload of the size that the scenarios submit.
const PAYLOAD: &str = r#"{"call":{"function":"noop","input":184467}}"#;

macro_rules! sql {
    ($name:literal) => {
        include_str!(concat!("../../sql/postgres/", $name, ".sql"))
    };
}

/// As [`sqlite::lives`](super::sqlite::lives).
pub async fn lives(url: &str, jobs: u64, group: usize) -> Result<Halves> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    let connection = tokio::spawn(connection);
    client.execute(sql!("floor_drop"), &[]).await?;
    client.execute(sql!("floor_table"), &[]).await?;
    let ids: Vec<i64> = (0..jobs.cast_signed()).collect();
    let insert = client.prepare(sql!("floor_insert")).await?;
    let begin = Instant::now();
    for group in ids.chunks(group) {
        client.execute(&insert, &[&group, &PAYLOAD]).await?;
    }
    let enqueue = begin.elapsed();
    let (start, end) = (client.prepare(sql!("floor_start")).await?, client.prepare(sql!("floor_end")).await?);
    let begin = Instant::now();
    for group in ids.chunks(group) {
        update(&client, &start, group).await?;
        update(&client, &end, group).await?;
    }
    let drain = begin.elapsed();
    let ended: i64 = client.query_one(sql!("floor_ended"), &[]).await?.get(0);
    ensure!(ended == jobs.cast_signed(), "the floor ended {ended} of {jobs} jobs");
    client.execute(sql!("floor_drop"), &[]).await?;
    drop(client);
    connection.await??;
    Ok(Halves { enqueue, drain })
}

async fn update(client: &Client, statement: &Statement, jobs: &[i64]) -> Result<()> {
    let changed = client.execute(statement, &[&jobs, &1i64]).await?;
    ensure!(changed == jobs.len() as u64, "{changed} of {} rows changed", jobs.len());
    Ok(())
}
