//! How our values are columns: words for enums, times as PostgreSQL's own, signed numbers for large ones.

use crate::words;
use bytes::{BufMut, BytesMut};
use std::borrow::Cow;
use std::error::Error;
use tidegate_core::ids::{Epoch, Name, NodeId, RunId};
use tidegate_core::protocol::{GrantRow, Life, Payload, Stop, Tally};
use tidegate_core::state::State;
use tidegate_core::time::{Moment, Span};
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

type Sent = Result<IsNull, Box<dyn Error + Sync + Send>>;
type Read<T> = Result<T, Box<dyn Error + Sync + Send>>;

/// A moment as `timestamptz`, exact to the microsecond. Those before PostgreSQL's time are its `-infinity`, which is
/// the first that we have; none is after it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Time(pub Moment);

/// From 1970 to 2000, where PostgreSQL begins to count.
const TO_2000: i64 = 946_684_800_000_000;
/// The first that `timestamptz` can hold, in microseconds from 2000.
const FIRST: i64 = -211_813_488_000_000_000;

impl ToSql for Time {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Sent {
        let micros = self.0.0.checked_sub(TO_2000).unwrap_or(i64::MIN);
        out.put_i64(if micros < FIRST { i64::MIN } else { micros });
        Ok(IsNull::No)
    }

    fn accepts(kind: &Type) -> bool {
        *kind == Type::TIMESTAMPTZ
    }

    to_sql_checked!();
}

impl<'a> FromSql<'a> for Time {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Read<Self> {
        let micros = i64::from_be_bytes(raw.try_into()?);
        // Only the first is kept as it is; somebody's `infinity` becomes our last.
        Ok(Time(Moment(if micros == i64::MIN { micros } else { micros.saturating_add(TO_2000) })))
    }

    fn accepts(kind: &Type) -> bool {
        *kind == Type::TIMESTAMPTZ
    }
}

/// Sixteen bytes as `uuid`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Uuid(pub u128);

impl ToSql for Uuid {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Sent {
        out.put_u128(self.0);
        Ok(IsNull::No)
    }

    fn accepts(kind: &Type) -> bool {
        *kind == Type::UUID
    }

    to_sql_checked!();
}

impl<'a> FromSql<'a> for Uuid {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Read<Self> {
        Ok(Uuid(u128::from_be_bytes(raw.try_into()?)))
    }

    fn accepts(kind: &Type) -> bool {
        *kind == Type::UUID
    }
}

/// PostgreSQL's text holds every character but NUL. Where ours does, this one of private use announces a digit: 0 for
/// NUL, 1 for itself.
const MARK: char = '\u{f0000}';

/// Our text as the database can hold it.
pub fn text(ours: &str) -> Cow<'_, str> {
    if ours.contains(['\0', MARK]) {
        Cow::Owned(ours.replace(MARK, "\u{f0000}1").replace('\0', "\u{f0000}0"))
    } else {
        Cow::Borrowed(ours)
    }
}

/// What [`text`] was made from.
pub fn untext(theirs: &str) -> Cow<'_, str> {
    if theirs.contains(MARK) {
        Cow::Owned(theirs.replace("\u{f0000}0", "\0").replace("\u{f0000}1", "\u{f0000}"))
    } else {
        Cow::Borrowed(theirs)
    }
}

pub fn signed(number: u64) -> i64 {
    number.cast_signed()
}

pub fn unsigned(number: i64) -> u64 {
    number.cast_unsigned()
}

/// A state or stop as its word.
pub struct Word<T>(pub T);

impl<'a> FromSql<'a> for Word<State> {
    fn from_sql(kind: &Type, raw: &'a [u8]) -> Read<Self> {
        let word = <&str>::from_sql(kind, raw)?;
        State::parse(word).map(Word).ok_or_else(|| format!("unknown word `{word}`").into())
    }

    fn accepts(kind: &Type) -> bool {
        <&str as FromSql>::accepts(kind)
    }
}

impl<'a> FromSql<'a> for Word<Stop> {
    fn from_sql(kind: &Type, raw: &'a [u8]) -> Read<Self> {
        let word = <&str>::from_sql(kind, raw)?;
        words::stop(word).map(Word).ok_or_else(|| format!("unknown word `{word}`").into())
    }

    fn accepts(kind: &Type) -> bool {
        <&str as FromSql>::accepts(kind)
    }
}

/// A number that never was negative or large when it was written.
pub fn small(row: &Row, column: usize) -> Result<u32, tokio_postgres::Error> {
    Ok(unsigned(row.try_get(column)?) as u32)
}

pub fn moment(row: &Row, column: usize) -> Result<Option<Moment>, tokio_postgres::Error> {
    Ok(row.try_get::<_, Option<Time>>(column)?.map(|time| time.0))
}

pub fn name(row: &Row, column: usize) -> Result<Option<Name>, tokio_postgres::Error> {
    Ok(row.try_get::<_, Option<&str>>(column)?.map(|text| Name::new(untext(text))))
}

pub fn string(row: &Row, column: usize) -> Result<Option<String>, tokio_postgres::Error> {
    Ok(row.try_get::<_, Option<&str>>(column)?.map(|text| untext(text).into_owned()))
}

pub fn payload(row: &Row, column: usize) -> Result<Option<Payload>, tokio_postgres::Error> {
    Ok(row.try_get::<_, Option<&[u8]>>(column)?.map(Payload::new))
}

pub fn node(row: &Row, column: usize) -> Result<NodeId, tokio_postgres::Error> {
    Ok(NodeId(unsigned(row.try_get(column)?)))
}

pub fn run_id(row: &Row, column: usize) -> Result<RunId, tokio_postgres::Error> {
    Ok(RunId(row.try_get::<_, Uuid>(column)?.0))
}

/// How many columns a life has.
pub const LIFE: usize = 17;

/// Reads the first [`LIFE`] columns of the statements that load tasks and items.
pub fn life(row: &Row) -> Result<Life, tokio_postgres::Error> {
    Ok(Life {
        state: row.try_get::<_, Word<State>>(0)?.0,
        tally: Tally { started: small(row, 1)?, failures: small(row, 2)?, losses: small(row, 3)? },
        stop: row.try_get::<_, Option<Word<Stop>>>(4)?.map(|stop| stop.0),
        started: moment(row, 5)?,
        error: string(row, 6)?,
        due: moment(row, 7)?,
        grant: grant(row)?,
        paused: row.try_get(14)?,
        entered: row.try_get(15)?,
        ended: moment(row, 16)?,
    })
}

fn grant(row: &Row) -> Result<Option<GrantRow>, tokio_postgres::Error> {
    let Some(worker) = name(row, 8)? else { return Ok(None) };
    Ok(Some(GrantRow {
        epoch: Epoch { incarnation: small(row, 9)?, grant: unsigned(row.try_get(10)?) },
        worker,
        at: row.try_get::<_, Time>(11)?.0,
        until: row.try_get::<_, Time>(12)?.0,
        length: Span(unsigned(row.try_get(13)?)),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(moment: Moment) -> Moment {
        let mut bytes = BytesMut::new();
        Time(moment).to_sql(&Type::TIMESTAMPTZ, &mut bytes).unwrap();
        Time::from_sql(&Type::TIMESTAMPTZ, &bytes).unwrap().0
    }

    #[test]
    fn moments_are_exact_and_those_before_all_time_are_the_first() {
        for micros in [0, -5, 1, TO_2000, i64::MAX / 2, i64::MIN, i64::MAX - 1, i64::MAX] {
            assert_eq!(round(Moment(micros)), Moment(micros));
        }
        assert_eq!(round(Moment(i64::MIN / 2)), Moment(i64::MIN));
    }

    #[test]
    fn any_text_comes_back() {
        for ours in ["", "plain", "a\0b\0", "\u{f0000}0", "\0\u{f0000}\0", "ü"] {
            let theirs = text(ours);
            assert!(!theirs.contains('\0'));
            assert_eq!(untext(&theirs), ours);
        }
    }
}
