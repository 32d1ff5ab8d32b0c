//! Many rows as one statement: a column is an array, and the statement unnests them.

use super::columns::{Time, Uuid, signed, text};
use super::fault::Fault;
use tidegate_core::protocol::GrantRow;
use tidegate_core::time::Moment;
use tokio_postgres::Client;
use tokio_postgres::types::{ToSql, Type};

/// The columns of rows of `T`, in the order in which a statement names them.
pub struct Batch<'a, T> {
    rows: &'a [T],
    columns: Vec<(Box<dyn ToSql + Sync + Send + 'a>, Type)>,
}

impl<'a, T> Batch<'a, T> {
    pub fn of(rows: &'a [T]) -> Self {
        Batch { rows, columns: Vec::new() }
    }

    fn column<V: ToSql + Sync + Send + 'a>(mut self, kind: Type, read: impl Fn(&'a T) -> V) -> Self {
        let values: Vec<V> = self.rows.iter().map(read).collect();
        self.columns.push((Box::new(values), kind));
        self
    }

    pub fn number(self, read: impl Fn(&'a T) -> Option<u64>) -> Self {
        self.column(Type::INT8_ARRAY, |row| read(row).map(signed))
    }

    pub fn priority(self, read: impl Fn(&'a T) -> Option<i8>) -> Self {
        self.column(Type::INT2_ARRAY, |row| read(row).map(i16::from))
    }

    pub fn word(self, read: impl Fn(&'a T) -> Option<&'a str>) -> Self {
        self.column(Type::TEXT_ARRAY, |row| read(row).map(text))
    }

    pub fn json(self, read: impl Fn(&'a T) -> Option<String>) -> Self {
        self.column(Type::TEXT_ARRAY, read)
    }

    pub fn time(self, read: impl Fn(&'a T) -> Option<Moment>) -> Self {
        self.column(Type::TIMESTAMPTZ_ARRAY, |row| read(row).map(Time))
    }

    pub fn flag(self, read: impl Fn(&'a T) -> Option<bool>) -> Self {
        self.column(Type::BOOL_ARRAY, read)
    }

    pub fn id(self, read: impl Fn(&'a T) -> Option<u128>) -> Self {
        self.column(Type::UUID_ARRAY, |row| read(row).map(Uuid))
    }

    pub fn bytes(self, read: impl Fn(&'a T) -> Option<&'a [u8]>) -> Self {
        self.column(Type::BYTEA_ARRAY, read)
    }

    /// Six columns: who has it, the epoch, since when, until when and for how long.
    pub fn grant(self, read: impl Fn(&'a T) -> Option<&'a GrantRow> + Copy) -> Self {
        self.word(move |row| read(row).map(|grant| grant.worker.as_str()))
            .number(move |row| read(row).map(|grant| grant.epoch.incarnation.into()))
            .number(move |row| read(row).map(|grant| grant.epoch.grant))
            .time(move |row| read(row).map(|grant| grant.at))
            .time(move |row| read(row).map(|grant| grant.until))
            .number(move |row| read(row).map(|grant| grant.length.0))
    }

    /// Runs the statement with these columns; not at all if there are no rows.
    pub async fn run(self, client: &Client, sql: &str) -> Result<(), Fault> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let columns: Vec<(&(dyn ToSql + Sync), Type)> = self
            .columns
            .iter()
            .map(|(values, kind)| (values.as_ref() as &(dyn ToSql + Sync), kind.clone()))
            .collect();
        client.execute_typed(sql, &columns).await?;
        Ok(())
    }
}
