//! PostgreSQL. Parameters are sent as text, which the server reads as what the statement needs; rows come in binary form.

mod bind;
mod moment;
mod read;

use super::address::take_certificates;
use super::check_count;
use super::results::{Rows, unreadable};
use super::trouble::Trouble;
use crate::tls;
use bind::Literal;
use futures_util::{StreamExt, pin_mut};
use read::Raw;
use serde_json::Value as Json;
use std::error::Error as _;
use std::time::Duration;
use tokio_postgres::config::SslMode;
use tokio_postgres::error::{DbError, ErrorPosition};
use tokio_postgres::{Client, Config, Error, NoTls, Row};
use tokio_postgres_rustls::MakeRustlsConnect;

/// A server that is gone without a word is noticed after a few of these.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// Undoes whatever a statement may have done to the session. Not `discard all`, which would also forget what the library
/// has prepared to look types up.
const FORGET: &str = "rollback; set session authorization default; reset all; close all; unlisten *; \
    select pg_advisory_unlock_all(); discard sequences; discard temp";

/// The server ends, starts or is full: `admin_shutdown`, `crash_shutdown`, `cannot_connect_now`, `too_many_connections`.
const PASSING: [&str; 4] = ["57P01", "57P02", "57P03", "53300"];

#[derive(Clone)]
pub(in crate::sql) struct Route {
    config: Config,
    tls: Option<MakeRustlsConnect>,
}

impl Route {
    /// The error is a sentence.
    pub(in crate::sql) fn parse(url: &str) -> Result<Route, String> {
        let (url, certificates) = take_certificates(url);
        let mut config: Config = url.parse().map_err(|error: Error| words(&error))?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err("the address names no host".to_owned());
        }
        config.keepalives_idle(KEEPALIVE);
        if config.get_application_name().is_none() {
            config.application_name("tidegate");
        }
        let tls = match config.get_ssl_mode() {
            SslMode::Require => Some(MakeRustlsConnect::new(tls::config(certificates.as_deref())?)),
            _ => {
                config.ssl_mode(SslMode::Disable);
                None
            }
        };
        Ok(Route { config, tls })
    }

    pub(in crate::sql) async fn connect(&self) -> Result<Session, Trouble> {
        // Who asks next hears how the connection ended.
        let client = match &self.tls {
            Some(tls) => self.config.connect(tls.clone()).await.map(|(client, connection)| {
                tokio::spawn(connection);
                client
            }),
            None => self.config.connect(NoTls).await.map(|(client, connection)| {
                tokio::spawn(connection);
                client
            }),
        };
        Ok(Session { client: client.map_err(|error| trouble(&error, true))?, tls: self.tls.clone() })
    }
}

pub(in crate::sql) struct Session {
    client: Client,
    tls: Option<MakeRustlsConnect>,
}

impl Session {
    pub(in crate::sql) async fn execute(
        &mut self,
        query: &str,
        params: Vec<Json>,
        mut rows: Rows,
    ) -> Result<Rows, Trouble> {
        let failed = |error| trouble(&error, false);
        let statement = self.client.prepare(query).await.map_err(failed)?;
        check_count(params.len(), statement.params().len())?;
        let mut literals = Vec::new();
        for (index, (value, kind)) in params.iter().zip(statement.params()).enumerate() {
            let unfit = |why| Trouble::Order(format!("parameter {}: {why}", index + 1));
            literals.push(Literal::new(value, kind).map_err(unfit)?);
        }
        rows.set_columns(statement.columns().iter().map(|column| column.name().to_owned()).collect())?;
        let answer = self.client.query_raw(&statement, literals).await.map_err(failed)?;
        pin_mut!(answer);
        while let Some(row) = answer.next().await {
            rows.push(values(&row.map_err(failed)?)?)?;
        }
        if !rows.has_columns() {
            rows.set_affected(answer.rows_affected().unwrap_or(0));
        }
        Ok(rows)
    }

    pub(in crate::sql) async fn say(&mut self, words: &str) -> Result<(), Trouble> {
        self.client.batch_execute(words).await.map_err(|error| trouble(&error, false))
    }

    pub(in crate::sql) async fn interrupt(&self) {
        let token = self.client.cancel_token();
        // It may have ended by itself; nobody says.
        let _ = match &self.tls {
            Some(tls) => token.cancel_query(tls.clone()).await,
            None => token.cancel_query(NoTls).await,
        };
    }

    pub(in crate::sql) async fn reset(&mut self) -> bool {
        self.client.batch_execute(FORGET).await.is_ok()
    }

    pub(in crate::sql) fn is_alive(&self) -> bool {
        !self.client.is_closed()
    }
}

fn values(row: &Row) -> Result<Vec<Json>, Trouble> {
    let value = |(index, column): (usize, &tokio_postgres::Column)| {
        let Raw(bytes) = row.try_get(index).map_err(|error| Trouble::Order(words(&error)))?;
        let value = bytes.map_or(Ok(Json::Null), |bytes| read::value(column.type_(), bytes));
        value.map_err(|_| unreadable(column.name(), column.type_().name()))
    };
    row.columns().iter().enumerate().map(value).collect()
}

fn trouble(error: &Error, connecting: bool) -> Trouble {
    match error.as_db_error() {
        Some(said) if PASSING.contains(&said.code().code()) || said.code().code().starts_with("08") => {
            Trouble::Unreachable(said.message().to_owned())
        }
        Some(said) => Trouble::Refused { message: refusal(said), code: said.code().code().to_owned() },
        None if connecting || error.is_closed() || is_io(error) => Trouble::Unreachable(words(error)),
        None => Trouble::Order(words(error)),
    }
}

/// `relation "x" does not exist (SQLSTATE 42P01, at character 15)`, and what there is to say besides.
fn refusal(said: &DbError) -> String {
    let place = match said.position() {
        Some(ErrorPosition::Original(at)) => format!(", at character {at}"),
        Some(ErrorPosition::Internal { .. }) | None => String::new(),
    };
    let mut message = format!("{} (SQLSTATE {}{place})", said.message(), said.code().code());
    for more in [said.detail(), said.hint()].into_iter().flatten() {
        message += &format!("; {more}");
    }
    message
}

fn is_io(error: &Error) -> bool {
    error.source().is_some_and(|source| source.is::<std::io::Error>())
}

/// What lies below says most.
fn words(error: &Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
