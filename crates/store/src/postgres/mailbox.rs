//! What applications left to be submitted.

use super::columns::{run_id, signed, text, unsigned};
use super::session::{PATIENCE, Session};
use super::{Columns, sql};
use crate::contract::{LETTERS_BYTES, Letter, StoreError};
use tokio_postgres::types::Type;

pub fn letters(session: &mut Session, after: u64, most: usize) -> Result<Vec<Letter>, StoreError> {
    let (after, most) = (signed(after), i64::try_from(most).unwrap_or(i64::MAX));
    session.call(PATIENCE, async |client| {
        let columns: Columns = &[(&after, Type::INT8), (&most, Type::INT8)];
        let (mut numbers, mut bytes) = (Vec::<i64>::new(), 0);
        for row in client.query_typed(sql!("letter_sizes"), columns).await? {
            bytes += usize::try_from(row.try_get::<_, i32>(1)?).unwrap_or(0);
            if bytes > LETTERS_BYTES && !numbers.is_empty() {
                break;
            }
            numbers.push(row.try_get(0)?);
        }
        if numbers.is_empty() {
            return Ok(Vec::new());
        }
        let mut letters = Vec::new();
        for row in client.query_typed(sql!("letter_read"), &[(&numbers, Type::INT8_ARRAY)]).await? {
            let content = row.try_get::<_, &str>(2)?.as_bytes().to_owned();
            letters.push(Letter { number: unsigned(row.try_get(0)?), id: run_id(&row, 1)?, content });
        }
        Ok(letters)
    })
}

pub fn set_aside(session: &mut Session, letter: u64, why: &str) -> Result<(), StoreError> {
    let (letter, why) = (signed(letter), text(why));
    session.call(PATIENCE, async |client| {
        let columns: Columns = &[(&letter, Type::INT8), (&why, Type::TEXT)];
        client.execute_typed(sql!("letter_set_aside"), columns).await?;
        Ok(())
    })
}
