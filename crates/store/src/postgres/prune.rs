//! History that nobody wants any more goes in slices, oldest end first.

use super::columns::{Time, signed, unsigned};
use super::fault::Fault;
use super::session::Session;
use super::{Columns, sql};
use crate::contract::{KEYS_STAY, StoreError};
use std::time::Duration;
use tidegate_core::time::Moment;
use tokio_postgres::Client;
use tokio_postgres::types::Type;

/// A slice with a loop of many items in it takes a while.
const PATIENCE: Duration = Duration::from_secs(60);

pub fn prune(session: &mut Session, before: Moment, most: u32) -> Result<u64, StoreError> {
    session.call(PATIENCE, async |client| {
        client.batch_execute("begin").await?;
        client.batch_execute(sql!("idle_most")).await?;
        client.query_typed(sql!("project_settings"), &[]).await?;
        let (keys_stay, limit) = (signed(KEYS_STAY.0), i64::from(most));
        let columns: Columns =
            &[(&Time(before), Type::TIMESTAMPTZ), (&keys_stay, Type::INT8), (&limit, Type::INT8)];
        let mut roots = Vec::new();
        for row in client.query_typed(sql!("prune_roots"), columns).await? {
            roots.push((row.try_get(0)?, row.try_get(1)?));
        }
        let gone = remove(client, &roots, limit).await?;
        client.batch_execute("commit").await?;
        Ok(gone)
    })
}

/// How many roots there are to be deleted.
pub fn count(session: &mut Session, before: Moment) -> Result<u64, StoreError> {
    let keys_stay = signed(KEYS_STAY.0);
    session.call(PATIENCE, async |client| {
        let columns: Columns = &[(&Time(before), Type::TIMESTAMPTZ), (&keys_stay, Type::INT8)];
        let row = client.query_typed_one(sql!("prune_count"), columns).await?;
        Ok(unsigned(row.try_get(0)?))
    })
}

/// Jobs, which are one row each, go together; what may have much below it goes by itself, so that it can be enough.
async fn remove(client: &Client, roots: &[(i64, bool)], most: i64) -> Result<u64, Fault> {
    let (mut left, mut gone) = (most, 0);
    for group in roots.chunk_by(|(_, before), (_, after)| *before && *after) {
        if left <= 0 {
            break;
        }
        let nodes: Vec<i64> = group.iter().take(left as usize).map(|(node, _)| *node).collect();
        let columns: Columns = &[(&nodes, Type::INT8_ARRAY)];
        let row = client.query_typed_one(sql!("prune_tree"), columns).await?;
        left -= row.try_get::<_, i64>(0)?;
        gone += nodes.len() as u64;
    }
    Ok(gone)
}
