//! The schema of a database, brought to the newest step by whichever server starts first.

use super::columns::unsigned;
use super::fault::Fault;
use super::session::Session;
use super::{Columns, sql};
use crate::contract::StoreError;
use crate::migrations::{self, Made, Migration, checksum};
use std::time::Duration;
use tokio_postgres::Client;
use tokio_postgres::types::Type;

/// Others may be at it, and some steps are work.
const PATIENCE: Duration = Duration::from_secs(600);

const MIGRATIONS: &[Migration] = &[
    Migration { number: 1, name: "tables", text: sql!("migrations/0001_tables") },
    Migration { number: 2, name: "submit_checks", text: sql!("migrations/0002_submit_checks") },
    Migration {
        number: 3,
        name: "submit_edges_and_prunable_roots",
        text: sql!("migrations/0003_submit_edges_and_prunable_roots"),
    },
    Migration {
        number: 4,
        name: "letter_sizes_and_open_children",
        text: sql!("migrations/0004_letter_sizes_and_open_children"),
    },
    Migration { number: 5, name: "roots_by_outcome", text: sql!("migrations/0005_roots_by_outcome") },
    Migration { number: 6, name: "reused_steps", text: sql!("migrations/0006_reused_steps") },
    Migration { number: 7, name: "tokens_and_audit", text: sql!("migrations/0007_tokens_and_audit") },
];

/// Makes the steps that are missing, all or none. A database that misses none is only looked at.
pub fn migrate(session: &mut Session) -> Result<(), StoreError> {
    session.call(PATIENCE, async |client| {
        let made = made(client).await?;
        if !made.is_empty() && migrations::missing(MIGRATIONS, &made)?.is_empty() {
            return Ok(());
        }
        client.batch_execute("begin").await?;
        client.batch_execute(sql!("migration_lock")).await?;
        // Somebody else may have been faster.
        let made = self::made(client).await?;
        client.batch_execute(sql!("schema_make")).await?;
        client.batch_execute(sql!("migration_table")).await?;
        for migration in migrations::missing(MIGRATIONS, &made)? {
            client.batch_execute(migration.text).await?;
            let (number, sum) = (i64::from(migration.number), checksum(migration.text));
            let columns: Columns =
                &[(&number, Type::INT8), (&migration.name, Type::TEXT), (&sum, Type::TEXT)];
            client.execute_typed(sql!("migration_add"), columns).await?;
        }
        client.batch_execute("commit").await?;
        Ok(())
    })
}

/// For who only reads.
pub fn expect_newest(session: &mut Session) -> Result<(), StoreError> {
    let made = session.call(PATIENCE, async |client| made(client).await)?;
    if made.is_empty() {
        return Err(StoreError::Broken("it is not a store of Tidegate".to_owned()));
    }
    migrations::expect_newest(MIGRATIONS, &made)
}

/// The steps that were made; none in a database that knows nothing of us.
async fn made(client: &Client) -> Result<Vec<Made>, Fault> {
    let row = client.query_typed_one(sql!("migration_state"), &[]).await?;
    let (has_schema, is_ours): (bool, bool) = (row.try_get(0)?, row.try_get(1)?);
    if !is_ours {
        let strange = "it has a schema `tidegate` of something else";
        return if has_schema { Err(StoreError::Broken(strange.to_owned()).into()) } else { Ok(Vec::new()) };
    }
    let mut made = Vec::new();
    for row in client.query_typed(sql!("migration_list"), &[]).await? {
        let number = unsigned(row.try_get(0)?) as u32;
        made.push(Made { number, name: row.try_get(1)?, checksum: row.try_get(2)? });
    }
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_released_is_not_edited() {
        migrations::expect_unedited(
            MIGRATIONS,
            &[
                "ffa23dd9fc496b4b",
                "2466bfd5117a47df",
                "3bd1ab279c3b3e19",
                "770f7de2019edb66",
                "ac8168b1e21e9ddc",
                "0a62d9cdac6dd459",
                "82829df6fae735cb",
            ],
        );
    }
}
