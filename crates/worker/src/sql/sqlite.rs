//! SQLite: a file on the machine of the worker, opened for each order and asked on threads that may block.

use super::results::{Rows, float};
use super::trouble::Trouble;
use super::{check_count, lock};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use rusqlite::config::DbConfig;
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, Error, ErrorCode, InterruptHandle, OpenFlags, Statement, ffi};
use serde_json::Value as Json;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long to wait for others who write, all in all, and how long without looking whether that is still wanted.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(50);
/// Steps of a statement after which it is asked again whether it is still wanted.
const STEPS: i32 = 1_000;

pub(in crate::sql) struct Session {
    connection: Arc<Mutex<Connection>>,
    interrupt: InterruptHandle,
    is_given_up: Arc<AtomicBool>,
}

impl Session {
    pub(in crate::sql) async fn open(path: PathBuf) -> Result<Session, Trouble> {
        let is_given_up = Arc::new(AtomicBool::new(false));
        let flag = is_given_up.clone();
        blocking(move || {
            let connection = open(&path, flag)
                .map_err(|error| Trouble::Unreachable(format!("{}: {error}", path.display())))?;
            let interrupt = connection.get_interrupt_handle();
            Ok(Session { connection: Arc::new(Mutex::new(connection)), interrupt, is_given_up })
        })
        .await
    }

    pub(in crate::sql) async fn execute(
        &mut self,
        query: &str,
        params: Vec<Json>,
        rows: Rows,
    ) -> Result<Rows, Trouble> {
        let query = query.to_owned();
        self.patiently(move |connection| {
            let mut rows = rows.clone();
            ask(connection, &query, &params, &mut rows)?;
            Ok(rows)
        })
        .await
    }

    pub(in crate::sql) async fn say(&mut self, words: &'static str) -> Result<(), Trouble> {
        self.patiently(move |connection| Ok(connection.execute_batch(words)?)).await
    }

    /// Waits until the thread has left it.
    pub(in crate::sql) async fn interrupt(&self) {
        self.is_given_up.store(true, Ordering::Relaxed);
        self.interrupt.interrupt();
        let connection = self.connection.clone();
        let _ = blocking(move || {
            drop(lock(&connection));
            Ok(())
        })
        .await;
    }

    /// Until others have written, and as long as this is wanted.
    async fn patiently<T: Send + 'static>(
        &self,
        mut work: impl FnMut(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Trouble> {
        let (connection, is_given_up) = (self.connection.clone(), self.is_given_up.clone());
        blocking(move || {
            let (connection, since) = (lock(&connection), Instant::now());
            loop {
                if is_given_up.load(Ordering::Relaxed) {
                    return Err(Trouble::Order("it was given up".to_owned()));
                }
                match work(&connection) {
                    Err(Fault::Sqlite(error)) if is_busy(&error) && since.elapsed() < PATIENCE => {}
                    done => return done.map_err(Fault::trouble),
                }
            }
        })
        .await
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Trouble> + Send + 'static,
) -> Result<T, Trouble> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| Trouble::Order(error.to_string()))?
}

fn open(path: &PathBuf, is_given_up: Arc<AtomicBool>) -> Result<Connection, Error> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(LOOK)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, true)?;
    connection.progress_handler(STEPS, Some(move || is_given_up.load(Ordering::Relaxed)))?;
    Ok(connection)
}

/// What SQLite says, or what we say.
enum Fault {
    Sqlite(Error),
    Other(Trouble),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        Fault::Sqlite(error)
    }
}

impl From<Trouble> for Fault {
    fn from(trouble: Trouble) -> Fault {
        Fault::Other(trouble)
    }
}

impl Fault {
    fn trouble(self) -> Trouble {
        match self {
            Fault::Other(trouble) => trouble,
            Fault::Sqlite(Error::MultipleStatement) => {
                Trouble::Order("these are several statements: put each into `transaction`".to_owned())
            }
            Fault::Sqlite(Error::SqliteFailure(error, message)) => {
                refused(error, message.unwrap_or_else(|| error.to_string()), "")
            }
            Fault::Sqlite(Error::SqlInputError { error, msg, offset, .. }) => {
                refused(error, msg, &format!(", at byte {offset}"))
            }
            Fault::Sqlite(other) => Trouble::Order(other.to_string()),
        }
    }
}

fn refused(error: ffi::Error, message: String, place: &str) -> Trouble {
    let code = error.extended_code.to_string();
    Trouble::Refused { message: format!("{message} (code {code}{place})"), code }
}

fn is_busy(error: &Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

fn ask(connection: &Connection, query: &str, params: &[Json], rows: &mut Rows) -> Result<(), Fault> {
    let mut statement = connection.prepare(query)?;
    bind_all(&mut statement, params)?;
    let columns = statement.column_names().map(str::to_owned).collect::<Vec<_>>();
    let width = columns.len();
    rows.set_columns(columns)?;
    let before = connection.total_changes();
    let mut found = statement.raw_query();
    while let Some(row) = found.next()? {
        let values = (0..width).map(|index| Ok(read(row.get_ref(index)?)));
        rows.push(values.collect::<Result<Vec<_>, Error>>()?)?;
    }
    drop(found);
    if width == 0 {
        // What was changed last is told also after statements that change nothing.
        let is_changed = connection.total_changes() != before;
        rows.set_affected(if is_changed { connection.changes() } else { 0 });
    }
    Ok(())
}

/// `?` are counted, `?2` and `$2` are the second wherever they stand.
fn bind_all(statement: &mut Statement<'_>, params: &[Json]) -> Result<(), Fault> {
    let count = statement.parameter_count();
    let number = |index: usize, name: Option<&str>| {
        let numbered = name.and_then(|name| name.get(1..)?.parse::<usize>().ok());
        match (name, numbered) {
            (None, _) => Ok(index),
            (_, Some(number)) if number > 0 => Ok(number),
            (Some(name), _) => {
                Err(Trouble::Order(format!("`{name}`: parameters have numbers, such as `$1`")))
            }
        }
    };
    let mut numbers = Vec::new();
    for index in 1..=count {
        numbers.push(number(index, statement.parameter_name(index))?);
    }
    check_count(params.len(), numbers.iter().copied().max().unwrap_or(0))?;
    for (index, number) in numbers.into_iter().enumerate() {
        let value =
            bind(&params[number - 1]).map_err(|why| Trouble::Order(format!("parameter {number}: {why}")))?;
        statement.raw_bind_parameter(index + 1, value)?;
    }
    Ok(())
}

/// The error is a sentence.
fn bind(value: &Json) -> Result<Value, String> {
    Ok(match value {
        Json::Null => Value::Null,
        Json::Bool(flag) => Value::Integer(i64::from(*flag)),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(number), _) => Value::Integer(number),
            (None, Some(_)) if number.is_u64() => return Err(format!("{number} is too large for SQLite")),
            (None, Some(number)) => Value::Real(number),
            (None, None) => return Err(format!("{number} is no number of SQLite")),
        },
        Json::String(text) => Value::Text(text.clone()),
        other => Value::Text(other.to_string()),
    })
}

fn read(value: ValueRef<'_>) -> Json {
    match value {
        ValueRef::Null => Json::Null,
        ValueRef::Integer(number) => Json::from(number),
        ValueRef::Real(number) => float(number),
        ValueRef::Text(text) => Json::from(String::from_utf8_lossy(text)),
        ValueRef::Blob(bytes) => Json::from(BASE64_STANDARD.encode(bytes)),
    }
}
