//! A database of its own for a test, on the server that `cargo xtask services` started. Each test binary uses the part
//! of this that it needs.
#![allow(dead_code)]

pub mod server;

use std::sync::atomic::{AtomicU32, Ordering};
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

/// How a test reaches its database.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Route {
    Direct,
    /// Through pgbouncer in transaction mode.
    Pooled,
}

pub struct Database {
    name: String,
    pub url: String,
    /// Past the pool, whatever the route.
    pub direct_url: String,
}

static MADE: AtomicU32 = AtomicU32::new(0);

impl Database {
    pub fn fresh(route: Route) -> Self {
        let made = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("tidegate_{}_{made}", std::process::id());
        Admin::connect(&server("TIDEGATE_TEST_POSTGRES")).run(&format!("create database {name}"));
        let url_of = |variable| {
            let server = server(variable);
            let (server, _) = server.rsplit_once('/').expect("the URL names a database");
            format!("{server}/{name}")
        };
        let direct_url = url_of("TIDEGATE_TEST_POSTGRES");
        let url = match route {
            Route::Direct => direct_url.clone(),
            Route::Pooled => url_of("TIDEGATE_TEST_PGBOUNCER"),
        };
        Database { name, url, direct_url }
    }

    /// Nothing has to survive this server.
    pub fn hurry(&self) {
        self.set("synchronous_commit = off");
    }

    /// For sessions to come.
    pub fn set(&self, setting: &str) {
        self.admin().run(&format!("alter database {} set {setting}", self.name));
    }

    /// A store as it was when it was made, and cheaper than making another.
    pub fn empty(&self) {
        let admin = self.admin();
        let clear = "select string_agg(format('delete from tidegate.%I', relname), '; ') from pg_stat_user_tables \
                     where schemaname = 'tidegate' and relname not in ('migration', 'leader', 'position')";
        admin.run(&admin.value(clear));
        admin.run("update tidegate.leader set term = 0, server = null");
        admin.run("update tidegate.position set sequence = 0, next = 0, now = 'epoch', digest = null");
    }

    pub fn admin(&self) -> Admin {
        Admin::connect(&self.direct_url)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let drop = format!("drop database {} with (force)", self.name);
        Admin::connect(&server("TIDEGATE_TEST_POSTGRES")).run(&drop);
    }
}

fn server(variable: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| {
        panic!("{variable} is not set: run `cargo xtask services -- cargo nextest run -p tidegate-store`")
    })
}

/// A plain client, for what a test does behind the store's back.
pub struct Admin {
    runtime: Runtime,
    client: Client,
}

impl Admin {
    pub fn connect(url: &str) -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let (client, connection) = runtime.block_on(tokio_postgres::connect(url, NoTls)).unwrap();
        runtime.spawn(connection);
        Admin { runtime, client }
    }

    pub fn run(&self, sql: &str) {
        self.runtime.block_on(self.client.batch_execute(sql)).unwrap();
    }

    /// Every row as its columns' text.
    pub fn rows(&self, sql: &str) -> Vec<Vec<Option<String>>> {
        let messages = self.runtime.block_on(self.client.simple_query(sql)).unwrap();
        let mut rows = Vec::new();
        for message in messages {
            if let SimpleQueryMessage::Row(row) = message {
                rows.push((0..row.len()).map(|column| row.get(column).map(str::to_owned)).collect());
            }
        }
        rows
    }

    /// The first column of the first row.
    pub fn value(&self, sql: &str) -> String {
        self.rows(sql)[0][0].clone().unwrap_or_default()
    }
}
