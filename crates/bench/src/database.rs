//! A database of its own for a turn of a scenario, on the server that `cargo xtask` started.

use anyhow::{Context, Result};
use std::sync::atomic::{AtomicU32, Ordering};
use tokio_postgres::{Client, NoTls};

/// The server to measure with.
const SERVER: &str = "TIDEGATE_TEST_POSTGRES";

pub struct Database {
    name: String,
    url: String,
}

impl Database {
    /// The URL of the server.
    pub fn server() -> Result<String> {
        std::env::var(SERVER).with_context(|| format!("{SERVER} names no server: use `cargo xtask bench`"))
    }

    pub async fn fresh() -> Result<Database> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("bench_{}_{number}", std::process::id());
        let server = Database::server()?;
        let (host, _) = server.rsplit_once('/').context("the URL of the server names no database")?;
        let url = format!("{host}/{name}");
        connect(&server).await?.batch_execute(&format!("create database {name}")).await?;
        Ok(Database { name, url })
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    pub async fn drop(self) -> Result<()> {
        let drop = format!("drop database {} with (force)", self.name);
        Ok(connect(&Database::server()?).await?.batch_execute(&drop).await?)
    }
}

pub async fn connect(url: &str) -> Result<Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    // It ends with the client.
    tokio::spawn(connection);
    Ok(client)
}
