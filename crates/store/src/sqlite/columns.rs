//! How our values are columns: words for enums, JSON for definitions, signed numbers for large ones.

use crate::words;
use rusqlite::Row;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tidegate_core::ids::{Epoch, Name};
use tidegate_core::protocol::{GrantRow, Life, Payload, Stop, Tally};
use tidegate_core::state::State;
use tidegate_core::time::{Moment, Span};

/// SQLite has no unsigned numbers of 64 bits. Those above the middle come back as they went.
pub fn signed(number: u64) -> i64 {
    number.cast_signed()
}

pub fn unsigned(number: i64) -> u64 {
    number.cast_unsigned()
}

pub fn micros(moment: Option<Moment>) -> Option<i64> {
    moment.map(|moment| moment.0)
}

/// A value as JSON text.
pub struct Json<T>(pub T);

impl<T: Serialize> ToSql for Json<T> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let text = serde_json::to_string(&self.0);
        text.map(ToSqlOutput::from).map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
    }
}

impl<T: DeserializeOwned> FromSql for Json<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let value = serde_json::from_str(value.as_str()?);
        value.map(Json).map_err(|error| FromSqlError::Other(Box::new(error)))
    }
}

/// A value that is one of a few words.
pub struct Word<T>(pub T);

pub trait Known: Copy {
    fn word(self) -> &'static str;
    fn read(word: &str) -> Option<Self>;
}

impl<T: Known> ToSql for Word<T> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::from(self.0.word()))
    }
}

impl<T: Known> FromSql for Word<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let word = value.as_str()?;
        T::read(word).map(Word).ok_or_else(|| FromSqlError::Other(format!("unknown word `{word}`").into()))
    }
}

impl Known for State {
    fn word(self) -> &'static str {
        self.as_str()
    }

    fn read(word: &str) -> Option<State> {
        State::parse(word)
    }
}

impl Known for Stop {
    fn word(self) -> &'static str {
        words::of_stop(self)
    }

    fn read(word: &str) -> Option<Stop> {
        words::stop(word)
    }
}

/// A payload: text, as people like to read it, unless it is not UTF-8.
pub struct Content<'a>(pub &'a Payload);

impl ToSql for Content<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let bytes = self.0.bytes();
        Ok(std::str::from_utf8(bytes).map_or_else(|_| ToSqlOutput::from(bytes), ToSqlOutput::from))
    }
}

pub fn content(row: &Row, column: usize) -> rusqlite::Result<Option<Payload>> {
    Ok(match row.get_ref(column)? {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Some(Payload::new(bytes)),
        _ => None,
    })
}

pub fn moment(row: &Row, column: usize) -> rusqlite::Result<Option<Moment>> {
    Ok(row.get::<_, Option<i64>>(column)?.map(Moment))
}

pub fn name(row: &Row, column: usize) -> rusqlite::Result<Option<Name>> {
    Ok(row.get_ref(column)?.as_str_or_null()?.map(Name::new))
}

/// How many columns a life has.
pub const LIFE: usize = 17;

/// Reads the first [`LIFE`] columns of `load_nodes.sql` and `load_items.sql`.
pub fn life(row: &Row) -> rusqlite::Result<Life> {
    Ok(Life {
        state: row.get::<_, Word<_>>(0)?.0,
        due: moment(row, 1)?,
        tally: Tally { started: row.get(2)?, failures: row.get(3)?, losses: row.get(4)? },
        grant: grant(row)?,
        stop: row.get::<_, Option<Word<_>>>(11)?.map(|stop| stop.0),
        paused: row.get(12)?,
        started: moment(row, 13)?,
        entered: row.get(14)?,
        ended: moment(row, 15)?,
        error: row.get(16)?,
    })
}

fn grant(row: &Row) -> rusqlite::Result<Option<GrantRow>> {
    let Some(worker) = name(row, 5)? else { return Ok(None) };
    Ok(Some(GrantRow {
        epoch: Epoch { incarnation: row.get(6)?, grant: unsigned(row.get(7)?) },
        worker,
        at: Moment(row.get(8)?),
        until: Moment(row.get(9)?),
        length: Span(unsigned(row.get(10)?)),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_numbers_come_back() {
        assert_eq!(unsigned(signed(u64::MAX)), u64::MAX);
    }
}
