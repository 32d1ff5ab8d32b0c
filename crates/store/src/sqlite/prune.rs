//! History that nobody wants any more goes in slices, so that a commit never waits long for it.

use super::columns::{signed, unsigned};
use super::{begin, sql};
use crate::contract::KEYS_STAY;
use rusqlite::{Connection, Row};
use tidegate_core::time::Moment;

pub fn prune(connection: &mut Connection, before: Moment, most: u32, clock: Moment) -> rusqlite::Result<u64> {
    let transaction = begin(connection)?;
    let roots: Vec<i64> = transaction
        .prepare_cached(sql!("prune_roots"))?
        .query_map((before.0, (clock - KEYS_STAY).0, most), |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    let mut left = i64::from(most);
    let mut gone = 0;
    for root in roots {
        if left <= 0 {
            break;
        }
        left -= remove_tree(&transaction, unsigned(root))?;
        gone += 1;
    }
    transaction.commit().map(|()| gone)
}

pub fn count(connection: &Connection, before: Moment, clock: Moment) -> rusqlite::Result<u64> {
    let columns = (before.0, (clock - KEYS_STAY).0);
    connection.query_row(sql!("prune_count"), columns, |row| row.get(0)).map(unsigned)
}

/// Gives the number of rows.
fn remove_tree(connection: &Connection, root: u64) -> rusqlite::Result<i64> {
    let read = |row: &Row| Ok((row.get(0)?, row.get(1)?));
    let nodes: Vec<(i64, bool)> = connection
        .prepare_cached(sql!("prune_tree"))?
        .query_map([signed(root)], read)?
        .collect::<rusqlite::Result<_>>()?;
    let mut rows = 0;
    for (node, may_have_items) in nodes {
        let remove = |sql| connection.prepare_cached(sql)?.execute([node]);
        rows += remove(sql!("task_remove"))?;
        remove(sql!("task_spec_remove"))?;
        remove(sql!("task_output_remove"))?;
        if may_have_items {
            rows += remove(sql!("items_remove"))?;
            remove(sql!("item_orders_remove"))?;
            remove(sql!("item_outputs_remove"))?;
        }
    }
    Ok(rows as i64)
}
