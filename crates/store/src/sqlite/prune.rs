//! History that nobody wants any more goes in slices, so that a commit never waits long for it.

use super::columns::unsigned;
use super::{begin, sql};
use crate::contract::{KEYS_STAY, Pruned};
use crate::retention::Before;
use rusqlite::{Connection, Row};
use tidegate_core::time::Moment;

pub fn prune(
    connection: &mut Connection,
    before: Before,
    most: u32,
    clock: Moment,
) -> rusqlite::Result<Pruned> {
    // Whoever finds nothing, which is the rule, has not kept a commit waiting.
    if oldest(connection, before, 1, clock)?.is_empty() {
        return Ok(Pruned::default());
    }
    let transaction = begin(connection)?;
    let roots = oldest(&transaction, before, most, clock)?;
    let mut slice = Slice { connection: &transaction, left: u64::from(most) };
    let mut gone = 0;
    for root in roots {
        if !slice.remove_tree(root)? {
            break;
        }
        gone += 1;
    }
    let pruned = Pruned { roots: gone, rows: u64::from(most) - slice.left };
    transaction.commit().map(|()| pruned)
}

/// How many roots there are to be deleted.
pub fn count(connection: &Connection, before: Before, clock: Moment) -> rusqlite::Result<u64> {
    let mut statement = connection.prepare_cached(sql!("prune_count"))?;
    let outcomes = before.outcomes().into_iter();
    outcomes
        .map(|(succeeded, before)| {
            let columns = (succeeded, before.0, (clock - KEYS_STAY).0);
            statement.query_row(columns, |row| row.get(0)).map(unsigned)
        })
        .sum()
}

/// Roots that may go, those that succeeded first.
fn oldest(connection: &Connection, before: Before, most: u32, clock: Moment) -> rusqlite::Result<Vec<i64>> {
    let mut roots = Vec::new();
    let mut statement = connection.prepare_cached(sql!("prune_roots"))?;
    for (succeeded, before) in before.outcomes() {
        let columns = (succeeded, before.0, (clock - KEYS_STAY).0, most);
        for root in statement.query_map(columns, |row| row.get(0))? {
            roots.push(root?);
        }
    }
    Ok(roots)
}

/// What is deleted with one commit.
struct Slice<'a> {
    connection: &'a Connection,
    /// Rows that may still go.
    left: u64,
}

impl Slice<'_> {
    /// Whether all of it went.
    fn remove_tree(&mut self, root: i64) -> rusqlite::Result<bool> {
        if self.left == 0 {
            return Ok(false);
        }
        let read = |row: &Row| Ok((row.get(0)?, row.get(1)?));
        let nodes: Vec<(i64, bool)> = self
            .connection
            .prepare_cached(sql!("prune_tree"))?
            .query_map([root], read)?
            .collect::<rusqlite::Result<_>>()?;
        for (step, _) in nodes.iter().filter(|(_, may_have_items)| *may_have_items) {
            self.remove_items(*step)?;
        }
        for (node, _) in nodes {
            if self.left == 0 {
                return Ok(false);
            }
            for sql in [sql!("task_remove"), sql!("task_spec_remove"), sql!("task_output_remove")] {
                self.connection.prepare_cached(sql)?.execute([node])?;
            }
            self.left -= 1;
        }
        Ok(true)
    }

    fn remove_items(&mut self, step: i64) -> rusqlite::Result<()> {
        let read = |row: &Row| Ok((row.get(0)?, row.get(1)?));
        let (count, last): (i64, Option<i64>) =
            self.connection.prepare_cached(sql!("prune_items"))?.query_row((step, self.left as i64), read)?;
        for sql in [sql!("items_remove"), sql!("item_orders_remove"), sql!("item_outputs_remove")] {
            self.connection.prepare_cached(sql)?.execute((step, last))?;
        }
        self.left -= unsigned(count);
        Ok(())
    }
}
