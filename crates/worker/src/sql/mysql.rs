//! MySQL and MariaDB. Times that know their moment (`timestamp`) are given in UTC.

use super::address::take_certificates;
use super::check_count;
use super::results::{Rows, float, short_float, unreadable};
use super::trouble::Trouble;
use crate::tls;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use futures_util::TryStreamExt;
use mysql_async::consts::ColumnType;
use mysql_async::prelude::Queryable;
use mysql_async::{Column, Conn, DriverError, Error, Opts, OptsBuilder, Params, Row, Value};
use serde_json::Value as Json;
use std::time::Duration;

/// A server that is gone without a word is noticed after a few of these.
const KEEPALIVE: Duration = Duration::from_secs(30);
const UTC: &str = "set time_zone = '+00:00'";
/// The server ends, or is full: too many connections, of all or of one user; shutting down.
const PASSING: [u16; 3] = [1040, 1053, 1203];
/// The set of characters of what is no text.
const BINARY: u16 = 63;
/// What a code means that says nothing but that there is one.
const GENERAL: &str = "HY000";

pub(in crate::sql) struct Route(Opts);

impl Route {
    /// The error is a sentence.
    pub(in crate::sql) fn parse(url: &str) -> Result<Route, String> {
        let (url, certificates) = take_certificates(url);
        let opts = Opts::from_url(&url).map_err(|error| error.to_string())?;
        let tls = match opts.ssl_opts().cloned() {
            Some(tls) => {
                let trusted = tls::certificates(certificates.as_deref())?;
                let trusted = trusted.into_iter().map(|certificate| certificate.to_vec().into()).collect();
                Some(tls.with_disable_built_in_roots(true).with_root_certs(trusted))
            }
            None => None,
        };
        let opts = OptsBuilder::from_opts(opts)
            .ssl_opts(tls)
            .prefer_socket(false)
            .stmt_cache_size(0)
            .tcp_keepalive(Some(KEEPALIVE))
            .setup(vec![UTC]);
        Ok(Route(opts.into()))
    }

    pub(in crate::sql) async fn connect(&self) -> Result<Session, Trouble> {
        Ok(Session(Conn::new(self.0.clone()).await.map_err(trouble)?))
    }
}

pub(in crate::sql) struct Session(Conn);

impl Session {
    pub(in crate::sql) async fn execute(
        &mut self,
        query: &str,
        params: Vec<Json>,
        mut rows: Rows,
    ) -> Result<Rows, Trouble> {
        let statement = self.0.prep(query).await.map_err(trouble)?;
        check_count(params.len(), usize::from(statement.num_params()))?;
        let params = match params.is_empty() {
            true => Params::Empty,
            false => Params::Positional(params.into_iter().map(bind).collect()),
        };
        let mut answer = self.0.exec_iter(&statement, params).await.map_err(trouble)?;
        let columns = answer.columns().unwrap_or_default();
        rows.set_columns(columns.iter().map(|column| column.name_str().into_owned()).collect())?;
        rows.set_affected(answer.affected_rows());
        if rows.has_columns() {
            rows.set_affected(0);
            if let Some(mut stream) = answer.stream::<Row>().await.map_err(trouble)? {
                while let Some(row) = stream.try_next().await.map_err(trouble)? {
                    let values = row.unwrap_raw().into_iter().zip(columns.iter());
                    let values = values.map(|(value, column)| read(value.unwrap_or(Value::NULL), column));
                    rows.push(values.collect::<Result<Vec<_>, _>>()?)?;
                }
            }
        }
        // A procedure may give more than one list; the others are left.
        answer.drop_result().await.map_err(trouble)?;
        self.0.close(statement).await.map_err(trouble)?;
        Ok(rows)
    }

    pub(in crate::sql) async fn say(&mut self, words: &str) -> Result<(), Trouble> {
        self.0.query_drop(words).await.map_err(trouble)
    }

    /// Ends the connection with what it is at. Only another connection can say so.
    pub(in crate::sql) async fn interrupt(&self) {
        let Ok(mut other) = Conn::new(self.0.opts().clone()).await else { return };
        // It may have ended by itself.
        let _ = other.query_drop(format!("kill {}", self.0.id())).await;
        let _ = other.disconnect().await;
    }

    pub(in crate::sql) async fn reset(&mut self) -> bool {
        matches!(self.0.reset().await, Ok(true))
    }

    pub(in crate::sql) async fn is_alive(&mut self) -> bool {
        self.0.ping().await.is_ok()
    }
}

/// The server makes of it what the statement needs. Lists and objects are JSON, as text.
fn bind(value: Json) -> Value {
    match value {
        Json::Null => Value::NULL,
        Json::Bool(flag) => Value::Int(i64::from(flag)),
        Json::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(number), _, _) => Value::Int(number),
            (_, Some(number), _) => Value::UInt(number),
            (_, _, Some(number)) => Value::Double(number),
            _ => Value::NULL,
        },
        Json::String(text) => Value::Bytes(text.into_bytes()),
        other => Value::Bytes(other.to_string().into_bytes()),
    }
}

fn read(value: Value, column: &Column) -> Result<Json, Trouble> {
    Ok(match value {
        Value::NULL => Json::Null,
        Value::Int(number) => Json::from(number),
        Value::UInt(number) => Json::from(number),
        Value::Float(number) => short_float(number),
        Value::Double(number) => float(number),
        Value::Date(year, month, day, hour, minute, second, micros) => {
            let date = format!("{year:04}-{month:02}-{day:02}");
            let zone = if column.column_type() == ColumnType::MYSQL_TYPE_TIMESTAMP { "Z" } else { "" };
            match column.column_type() {
                ColumnType::MYSQL_TYPE_DATE => Json::from(date),
                _ => Json::from(format!("{date}T{}{zone}", time(u32::from(hour), minute, second, micros))),
            }
        }
        Value::Time(is_negative, days, hours, minutes, seconds, micros) => {
            let sign = if is_negative { "-" } else { "" };
            Json::from(format!("{sign}{}", time(days * 24 + u32::from(hours), minutes, seconds, micros)))
        }
        Value::Bytes(bytes) => read_bytes(bytes, column)?,
    })
}

fn read_bytes(bytes: Vec<u8>, column: &Column) -> Result<Json, Trouble> {
    use ColumnType::*;
    let kind = column.column_type();
    let unfit = || unreadable(&column.name_str(), &format!("{kind:?}"));
    match kind {
        MYSQL_TYPE_BIT if bytes.len() <= 8 => {
            Ok(Json::from(bytes.iter().fold(0u64, |number, byte| number << 8 | u64::from(*byte))))
        }
        MYSQL_TYPE_JSON => serde_json::from_slice(&bytes).map_err(|_| unfit()),
        MYSQL_TYPE_GEOMETRY => Err(unfit()),
        MYSQL_TYPE_TINY_BLOB
        | MYSQL_TYPE_BLOB
        | MYSQL_TYPE_MEDIUM_BLOB
        | MYSQL_TYPE_LONG_BLOB
        | MYSQL_TYPE_STRING
        | MYSQL_TYPE_VAR_STRING
        | MYSQL_TYPE_VARCHAR
            if column.character_set() == BINARY =>
        {
            Ok(Json::from(BASE64_STANDARD.encode(bytes)))
        }
        _ => String::from_utf8(bytes).map(Json::from).map_err(|_| unfit()),
    }
}

fn time(hours: u32, minutes: u8, seconds: u8, micros: u32) -> String {
    let whole = format!("{hours:02}:{minutes:02}:{seconds:02}");
    match micros {
        0 => whole,
        micros => format!("{whole}.{micros:06}").trim_end_matches('0').to_owned(),
    }
}

fn trouble(error: Error) -> Trouble {
    match error {
        Error::Server(said) if PASSING.contains(&said.code) => Trouble::Unreachable(said.message),
        Error::Server(said) => {
            let message = format!("{} (error {}, SQLSTATE {})", said.message, said.code, said.state);
            let code = if said.state == GENERAL { said.code.to_string() } else { said.state };
            Trouble::Refused { message, code }
        }
        Error::Io(error) => Trouble::Unreachable(error.to_string()),
        Error::Driver(DriverError::ConnectionClosed) => {
            Trouble::Unreachable("the server has closed it".to_owned())
        }
        other => Trouble::Order(other.to_string()),
    }
}
