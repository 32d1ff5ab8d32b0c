//! The schema of a file, brought to the newest step by its owner.

use super::fault::said;
use super::sql;
use crate::contract::StoreError;
use crate::migrations::{self, Made, Migration, checksum};
use rusqlite::{Connection, Row, TransactionBehavior};

const MIGRATIONS: &[Migration] = &[
    Migration { number: 1, name: "tables", text: sql!("migrations/0001_tables") },
    Migration { number: 2, name: "roots_by_outcome", text: sql!("migrations/0002_roots_by_outcome") },
    Migration { number: 3, name: "reused_steps", text: sql!("migrations/0003_reused_steps") },
    Migration { number: 4, name: "tokens_and_audit", text: sql!("migrations/0004_tokens_and_audit") },
];

/// Makes the steps that are missing, all or none.
pub fn migrate(connection: &mut Connection) -> Result<(), StoreError> {
    if !is_ours(connection).map_err(said)? {
        return Err(StoreError::Broken("it is a database of something else".to_owned()));
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(said)?;
    transaction.execute_batch(sql!("migration_table")).map_err(said)?;
    for migration in migrations::missing(MIGRATIONS, &made(&transaction).map_err(said)?)? {
        transaction.execute_batch(migration.text).map_err(said)?;
        let row = (migration.number, migration.name, checksum(migration.text));
        transaction.execute(sql!("migration_add"), row).map_err(said)?;
    }
    transaction.commit().map_err(said)
}

/// For who only reads.
pub fn expect_newest(connection: &Connection) -> Result<(), StoreError> {
    if !has_table(connection, "migration").map_err(said)? {
        return Err(StoreError::Broken("it is not a store of Tidegate".to_owned()));
    }
    migrations::expect_newest(MIGRATIONS, &made(connection).map_err(said)?)
}

fn made(connection: &Connection) -> rusqlite::Result<Vec<Made>> {
    let read = |row: &Row| Ok(Made { number: row.get(0)?, name: row.get(1)?, checksum: row.get(2)? });
    connection.prepare(sql!("migration_list"))?.query_map([], read)?.collect()
}

fn is_ours(connection: &Connection) -> rusqlite::Result<bool> {
    let is_empty: bool = connection.query_row(sql!("is_empty"), [], |row| row.get(0))?;
    Ok(is_empty || has_table(connection, "migration")?)
}

fn has_table(connection: &Connection, name: &str) -> rusqlite::Result<bool> {
    connection.query_row(sql!("table_exists"), [name], |row| row.get(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_released_is_not_edited() {
        let checksums = ["9a835fbe61a9b77f", "db016bbe1586de40", "8364175633fea9cf", "fa1ba0e14cf233a0"];
        migrations::expect_unedited(MIGRATIONS, &checksums);
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
