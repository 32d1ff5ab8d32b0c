//! The schema, as numbered steps that are made once and never edited.
//!
//! There is no way back: a file that a newer version has changed is refused, and a step whose text is not what was
//! once made means that nobody knows what the tables look like.

use super::fault::said;
use super::sql;
use crate::contract::StoreError;
use rusqlite::{Connection, TransactionBehavior};

struct Migration {
    number: u32,
    name: &'static str,
    text: &'static str,
}

const MIGRATIONS: &[Migration] =
    &[Migration { number: 1, name: "tables", text: sql!("migrations/0001_tables") }];

/// The newest schema that this version knows.
fn known() -> u32 {
    MIGRATIONS.last().map_or(0, |migration| migration.number)
}

/// Makes the steps that are missing, all or none.
pub fn migrate(connection: &mut Connection) -> Result<(), StoreError> {
    if !is_ours(connection).map_err(said)? {
        return Err(StoreError::Broken("it is a database of something else".to_owned()));
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(said)?;
    transaction.execute_batch(sql!("migration_table")).map_err(said)?;
    let made = check(&transaction)?;
    for migration in MIGRATIONS.iter().filter(|migration| migration.number > made) {
        transaction.execute_batch(migration.text).map_err(said)?;
        let row = (migration.number, migration.name, checksum(migration.text));
        transaction.execute(sql!("migration_add"), row).map_err(said)?;
    }
    transaction.commit().map_err(said)
}

/// For who only reads: the schema must be exactly the one this version knows.
pub fn expect_newest(connection: &Connection) -> Result<(), StoreError> {
    if !has_table(connection, "migration").map_err(said)? {
        return Err(StoreError::Broken("it is not a store of Tidegate".to_owned()));
    }
    let made = check(connection)?;
    if made < known() {
        let old = format!("its schema is {made}, and only an owner can bring it to {}", known());
        return Err(StoreError::Broken(old));
    }
    Ok(())
}

/// The newest step that was made, if all of them are the ones we know.
fn check(connection: &Connection) -> Result<u32, StoreError> {
    let mut newest = 0;
    for (number, name, sum) in made(connection).map_err(said)? {
        let Some(migration) = MIGRATIONS.iter().find(|migration| migration.number == number) else {
            return Err(StoreError::Newer { found: number, known: known() });
        };
        if checksum(migration.text) != sum {
            return Err(StoreError::Broken(format!(
                "migration {number} ({name}) was made with another text"
            )));
        }
        newest = number;
    }
    Ok(newest)
}

fn made(connection: &Connection) -> rusqlite::Result<Vec<(u32, String, String)>> {
    let mut statement = connection.prepare(sql!("migration_list"))?;
    statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?.collect()
}

fn is_ours(connection: &Connection) -> rusqlite::Result<bool> {
    let is_empty: bool = connection.query_row(sql!("is_empty"), [], |row| row.get(0))?;
    Ok(is_empty || has_table(connection, "migration")?)
}

fn has_table(connection: &Connection, name: &str) -> rusqlite::Result<bool> {
    connection.query_row(sql!("table_exists"), [name], |row| row.get(0))
}

/// FNV-1a: it has to notice an edit, not an attack. Line ends do not count, because git may change them.
fn checksum(text: &str) -> String {
    let bytes = text.bytes().filter(|&byte| byte != b'\r');
    let sum = bytes
        .fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    format!("{sum:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_rise_by_one() {
        assert!(MIGRATIONS.iter().map(|migration| migration.number).eq(1..=known()));
    }

    #[test]
    fn what_was_released_is_not_edited() {
        let sums: Vec<String> = MIGRATIONS.iter().map(|migration| checksum(migration.text)).collect();
        assert_eq!(sums, ["9a835fbe61a9b77f"]);
        assert_eq!(checksum("a\r\nb"), checksum("a\nb"));
    }

    #[test]
    fn an_edited_step_and_a_strange_file_are_noticed() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection).unwrap();
        migrate(&mut connection).unwrap();
        connection.execute("update migration set checksum = 'x'", []).unwrap();
        assert!(matches!(migrate(&mut connection), Err(StoreError::Broken(_))));

        let mut strange = Connection::open_in_memory().unwrap();
        strange.execute("create table song (title)", []).unwrap();
        assert!(matches!(migrate(&mut strange), Err(StoreError::Broken(_))));
        assert!(matches!(expect_newest(&strange), Err(StoreError::Broken(_))));
    }
}
