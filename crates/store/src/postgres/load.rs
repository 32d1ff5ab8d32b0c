//! Everything open, as of one moment. What the journal holds and the tables do not is projected first, by the very
//! code that always does it, so there is one meaning of an entry.

use super::columns::{LIFE, life, moment, name, node, payload, small, string, unsigned};
use super::fault::Fault;
use super::projector::advance;
use super::session::Session;
use super::{Columns, sql};
use crate::codec;
use crate::contract::{Loaded, StoreError};
use futures_util::StreamExt;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::time::Duration;
use tidegate_core::admission::{LimitKey, SlotCounts};
use tidegate_core::ids::NodeId;
use tidegate_core::protocol::{DeclaredRow, ItemRow, LimitRow, NodeRow, Pace, Snapshot, WorkerRow};
use tidegate_core::state::State;
use tidegate_core::{LoopTally, RESIDENT};
use tokio::time::timeout;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row};

/// A load has no length of its own, but it always gets on: this is how long it may stand still.
const STANDSTILL: Duration = Duration::from_secs(30);
const PATIENCE: Duration = Duration::from_secs(3_600);
/// Rows that are looked at between two looks at the clock.
const CHUNK: usize = 1_024;

pub fn load(session: &mut Session) -> Result<Loaded, StoreError> {
    session.call(PATIENCE, async |client| {
        client.batch_execute("begin isolation level repeatable read").await?;
        client.batch_execute(sql!("idle_most")).await?;
        within(client.batch_execute(sql!("position_lock"))).await?;
        client.query_typed(sql!("project_settings"), &[]).await?;
        let mut position = position(client).await?;
        loop {
            let reached = within(advance(client, position.sequence)).await?;
            if reached == position.sequence {
                break;
            }
            position = self::position(client).await?;
        }
        let loaded = read(client, position).await?;
        within(client.batch_execute("commit")).await?;
        Ok(loaded)
    })
}

async fn within<T, E>(work: impl Future<Output = Result<T, E>>) -> Result<T, Fault>
where
    Fault: From<E>,
{
    timeout(STANDSTILL, work).await.map_err(|_| Fault::Stalled)?.map_err(Fault::from)
}

/// The loaded of a store without rows.
async fn position(client: &Client) -> Result<Loaded, Fault> {
    let row = client.query_typed_one(sql!("position_get"), &[]).await?;
    let snapshot = Snapshot {
        next: unsigned(row.try_get(1)?),
        now: moment(&row, 2)?.unwrap_or_default(),
        ..Snapshot::default()
    };
    let digest = row.try_get::<_, Option<i64>>(3)?.map(unsigned);
    Ok(Loaded { snapshot, sequence: unsigned(row.try_get(0)?), digest })
}

async fn read(client: &Client, empty: Loaded) -> Result<Loaded, Fault> {
    let resident = RESIDENT as i32;
    let small: Columns = &[(&resident, Type::INT4)];
    // From here on whole tables are read.
    client.query_typed(sql!("load_settings"), &[]).await?;
    let mut nodes = all(client, sql!("load_open_tasks"), small, task).await?;
    let steps = all(client, sql!("load_ended_steps"), small, task).await?;
    if !steps.is_empty() {
        nodes.extend(steps);
        nodes.sort_by_key(|row| row.node);
    }
    let mut limits = all(client, sql!("load_limits"), &[], limit).await?;
    limits.sort_by(|a, b| a.key.cmp(&b.key));
    let mut paces = all(client, sql!("load_paces"), &[], pace).await?;
    paces.sort_by(|a, b| a.0.cmp(&b.0));
    let mut workers = all(client, sql!("load_workers"), &[], worker).await?;
    workers.sort_by(|a, b| a.worker.cmp(&b.worker));
    let snapshot = Snapshot {
        nodes,
        items: all(client, sql!("load_items"), &[], item).await?,
        loops: loops(client).await?,
        limits,
        paces,
        declared: all(client, sql!("load_declared"), &[], declared).await?,
        workers,
        ..empty.snapshot
    };
    Ok(Loaded { snapshot, ..empty })
}

pub fn declared(row: &Row) -> Result<DeclaredRow, Fault> {
    json(row.try_get(0)?)
}

/// Rows are read as they come: a million of them are not held twice.
async fn all<T>(
    client: &Client,
    sql: &str,
    columns: Columns<'_>,
    read: impl Fn(&Row) -> Result<T, Fault>,
) -> Result<Vec<T>, Fault> {
    let columns = columns.iter().map(|(value, kind)| (*value as &(dyn ToSql + Sync), kind.clone()));
    let stream = within(client.query_typed_raw(sql, columns)).await?;
    let mut chunks = std::pin::pin!(stream.ready_chunks(CHUNK));
    let mut values = Vec::new();
    while let Some(rows) = timeout(STANDSTILL, chunks.next()).await.map_err(|_| Fault::Stalled)? {
        for row in rows {
            values.push(read(&row?)?);
        }
    }
    Ok(values)
}

pub fn task(row: &Row) -> Result<NodeRow, Fault> {
    Ok(NodeRow {
        node: node(row, LIFE)?,
        parent: row.try_get::<_, Option<i64>>(LIFE + 1)?.map(|parent| NodeId(unsigned(parent))),
        root: unsigned(row.try_get(LIFE + 2)?),
        priority: row.try_get::<_, i16>(LIFE + 3)? as i8,
        accepted: moment(row, LIFE + 4)?.unwrap_or_default(),
        body: codec::decode_part(row.try_get(LIFE + 5)?)?,
        payload: payload(row, LIFE + 6)?,
        life: life(row)?,
    })
}

fn item(row: &Row) -> Result<ItemRow, Fault> {
    let (step, index, key) = (node(row, LIFE)?, small(row, LIFE + 1)?, name(row, LIFE + 2)?);
    Ok(ItemRow { step, index, key, life: life(row)? })
}

async fn loops(client: &Client) -> Result<BTreeMap<NodeId, (u32, LoopTally)>, Fault> {
    let read = |row: &Row| {
        let state: Option<&str> = row.try_get(1)?;
        Ok((node(row, 0)?, state.and_then(State::parse), small(row, 2)?))
    };
    let mut loops = BTreeMap::<NodeId, (u32, LoopTally)>::new();
    for (step, state, count) in all(client, sql!("load_loops"), &[], read).await? {
        let (rows, ended) = loops.entry(step).or_default();
        *rows += count;
        if let Some(state) = state {
            (0..count).for_each(|_| ended.count(state));
        }
    }
    Ok(loops)
}

fn limit(row: &Row) -> Result<LimitRow, Fault> {
    let set = row.try_get::<_, Option<&str>>(1)?.map(json).transpose()?;
    Ok(LimitRow { key: json(row.try_get(0)?)?, set, paused: row.try_get(2)? })
}

fn pace(row: &Row) -> Result<(LimitKey, Pace), Fault> {
    Ok((json(row.try_get(0)?)?, json(row.try_get(1)?)?))
}

fn worker(row: &Row) -> Result<WorkerRow, Fault> {
    Ok(WorkerRow {
        worker: string(row, 0)?.unwrap_or_default().into(),
        incarnation: unsigned(row.try_get(1)?),
        skills: json(row.try_get(2)?)?,
        slots: SlotCounts { process: small(row, 3)?, io: small(row, 4)? },
    })
}

pub fn json<T: DeserializeOwned>(text: &str) -> Result<T, Fault> {
    serde_json::from_str(text).map_err(|error| Fault::Said(StoreError::Broken(error.to_string())))
}
