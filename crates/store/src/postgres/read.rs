//! Single things that are asked for: first in what this process committed a moment ago, then in the tables.

use super::columns::{Uuid, Word, node, payload, run_id, signed, small, string, text, unsigned};
use super::fault::Fault;
use super::overlay::{Overlay, RecentEnd};
use super::session::{PATIENCE, Session};
use super::{Columns, ENTRIES_BYTES, sql};
use crate::codec;
use crate::contract::{Ended, Entry, Found, Sought, StoreError};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidegate_core::ids::{NodeId, TaskId};
use tidegate_core::protocol::Payload;
use tidegate_core::state::State;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Row};

/// How often to look whether the tables have got to an entry.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

pub fn find(
    session: &mut Session,
    overlay: &Overlay,
    sought: &[Sought],
) -> Result<Vec<Option<Found>>, StoreError> {
    let mut found: Vec<Option<Found>> = sought.iter().map(|sought| overlay.find(sought)).collect();
    let missing: Vec<usize> = (0..sought.len()).filter(|&index| found[index].is_none()).collect();
    if missing.is_empty() {
        return Ok(found);
    }
    let ids: Vec<Option<Uuid>> = missing.iter().map(|&index| id(&sought[index])).collect();
    let keys: Vec<Option<Cow<str>>> = missing.iter().map(|&index| key(&sought[index])).collect();
    let rows = session.call(PATIENCE, async |client| {
        let columns: Columns = &[(&ids, Type::UUID_ARRAY), (&keys, Type::TEXT_ARRAY)];
        Ok(client.query_typed(sql!("find"), columns).await?)
    })?;
    for (&index, row) in missing.iter().zip(&rows) {
        found[index] = accepted(row).map_err(Fault::from)?;
    }
    for index in missing {
        if let Sought::Part(node) = sought[index] {
            found[index] = find_part(session, overlay, node)?;
        }
    }
    Ok(found)
}

/// What the tables have not heard of is inside something newer than they are, or inside something they know.
fn find_part(
    session: &mut Session,
    overlay: &Overlay,
    mut part: NodeId,
) -> Result<Option<Found>, StoreError> {
    while let Some(around) = overlay.around(part) {
        part = around;
        if let Some(found) = overlay.find(&Sought::Part(part)) {
            return Ok(Some(found));
        }
    }
    let part = signed(part.0);
    session.call(PATIENCE, async |client| {
        let row = client.query_typed_opt(sql!("find_part"), &[(&part, Type::INT8)]).await?;
        Ok(row.map(|row| accepted(&row)).transpose()?.flatten())
    })
}

fn id(sought: &Sought) -> Option<Uuid> {
    match sought {
        Sought::Id(id) => Some(Uuid(id.0)),
        Sought::Key(_) | Sought::Part(_) => None,
    }
}

fn key(sought: &Sought) -> Option<Cow<'_, str>> {
    match sought {
        Sought::Id(_) | Sought::Part(_) => None,
        Sought::Key(key) => Some(text(key.as_str())),
    }
}

fn accepted(row: &Row) -> Result<Option<Found>, tokio_postgres::Error> {
    if row.try_get::<_, Option<i64>>(0)?.is_none() {
        return Ok(None);
    }
    let content = row.try_get::<_, Option<i64>>(2)?.map(unsigned);
    Ok(Some(Found { node: node(row, 0)?, id: run_id(row, 1)?, content }))
}

pub fn payload_of(
    session: &mut Session,
    overlay: &Overlay,
    task: TaskId,
) -> Result<Option<Payload>, StoreError> {
    if let Some(known) = overlay.payload(task) {
        return Ok(known);
    }
    let (node, index) = numbers(task);
    session.call(PATIENCE, async |client| {
        let columns: Columns = &[(&node, Type::INT8), (&index, Type::INT8)];
        let row = match task.index() {
            None => client.query_typed(sql!("task_payload_get"), &columns[..1]).await?,
            Some(_) => client.query_typed(sql!("item_payload_get"), columns).await?,
        };
        Ok(row.first().map(|row| payload(row, 0)).transpose()?.flatten())
    })
}

pub fn ended(session: &mut Session, overlay: &Overlay, task: TaskId) -> Result<Option<Ended>, StoreError> {
    let Some(index) = task.index() else { return ended_node(session, overlay, task) };
    let items = ended_items(session, overlay, task.node, index, index.saturating_add(1))?;
    Ok(items.into_iter().next().map(|(_, ended)| ended))
}

fn ended_node(session: &mut Session, overlay: &Overlay, task: TaskId) -> Result<Option<Ended>, StoreError> {
    let recent = overlay.ended(task);
    if let Some(RecentEnd { state, output, error, attempts: Some(attempts) }) = recent {
        return Ok(Some(Ended { state, output, error, attempts }));
    }
    let node = signed(task.node.0);
    session.call(PATIENCE, async |client| {
        let columns: Columns = &[(&node, Type::INT8)];
        let Some(recent) = &recent else {
            let rows = client.query_typed(sql!("task_ended_get"), columns).await?;
            return Ok(rows.first().map(how_it_ended).transpose()?);
        };
        let rows = client.query_typed(sql!("task_attempts_get"), columns).await?;
        // Without a row the end was of nothing, and changed nothing.
        let Some(row) = rows.first() else { return Ok(None) };
        Ok(Some(finished(recent, small(row, 0)?)))
    })
}

pub fn ended_items(
    session: &mut Session,
    overlay: &Overlay,
    step: NodeId,
    from: u32,
    to: u32,
) -> Result<Vec<(u32, Ended)>, StoreError> {
    let recent = overlay.ended_items(step, from, to);
    let (step, from, to) = (signed(step.0), i64::from(from), i64::from(to));
    session.call(PATIENCE, async |client| {
        let columns: Columns = &[(&step, Type::INT8), (&from, Type::INT8), (&to, Type::INT8)];
        let rows = client.query_typed(sql!("item_ended_get"), columns).await?;
        let mut items = BTreeMap::new();
        for row in &rows {
            items.insert(small(row, 4)?, how_it_ended(row)?);
        }
        if recent.keys().any(|index| !items.contains_key(index)) {
            add_recent(client, columns, &recent, &mut items).await?;
        }
        Ok(items.into_iter().collect())
    })
}

async fn add_recent(
    client: &Client,
    range: Columns<'_>,
    recent: &BTreeMap<u32, RecentEnd>,
    items: &mut BTreeMap<u32, Ended>,
) -> Result<(), Fault> {
    let mut attempts = BTreeMap::new();
    if recent.values().any(|end| end.attempts.is_none()) {
        for row in client.query_typed(sql!("item_attempts_get"), range).await? {
            attempts.insert(small(&row, 0)?, small(&row, 1)?);
        }
    }
    for (index, end) in recent {
        if let Some(attempts) = end.attempts.or_else(|| attempts.get(index).copied()) {
            items.entry(*index).or_insert_with(|| finished(end, attempts));
        }
    }
    Ok(())
}

fn finished(end: &RecentEnd, attempts: u32) -> Ended {
    let RecentEnd { state, output, error, .. } = end.clone();
    Ended { state, output, error, attempts }
}

/// Reads the first columns of the statements about ends.
fn how_it_ended(row: &Row) -> Result<Ended, tokio_postgres::Error> {
    Ok(Ended {
        state: row.try_get::<_, Word<State>>(0)?.0,
        output: payload(row, 1)?,
        error: string(row, 2)?,
        attempts: small(row, 3)?,
    })
}

pub fn entries(
    session: &mut Session,
    after: u64,
    most: usize,
) -> Result<Option<Vec<Arc<Entry>>>, StoreError> {
    let (after, limit) = (signed(after), i64::try_from(most).unwrap_or(i64::MAX));
    session.call(PATIENCE, async |client| {
        let columns: Columns = &[(&after, Type::INT8), (&limit, Type::INT8), (&ENTRIES_BYTES, Type::INT8)];
        let rows = client.query_typed(sql!("journal_list"), columns).await?;
        let mut entries = Vec::with_capacity(rows.len());
        for (expected, row) in (after + 1..).zip(&rows) {
            if row.try_get::<_, i64>(0)? != expected {
                return Ok(None);
            }
            entries.push(Arc::new(codec::decode(row.try_get(1)?)?));
        }
        Ok(Some(entries))
    })
}

pub fn last(session: &mut Session) -> Result<u64, StoreError> {
    session.call(PATIENCE, async |client| {
        let row = client.query_typed_one(sql!("journal_last"), &[]).await?;
        Ok(row.try_get::<_, Option<i64>>(0)?.map_or(0, unsigned))
    })
}

/// How many entries the tables do not show yet.
pub fn behind(session: &mut Session) -> Result<u64, StoreError> {
    session.call(PATIENCE, async |client| {
        let position = client.query_typed_one(sql!("position_get"), &[]).await?;
        let last = client.query_typed_one(sql!("journal_last"), &[]).await?;
        let last = last.try_get::<_, Option<i64>>(0)?.map_or(0, unsigned);
        Ok(last.saturating_sub(unsigned(position.try_get(0)?)))
    })
}

/// Waits until the tables, or what this process remembers, hold an entry.
pub fn reach(
    session: &mut Session,
    overlay: &Overlay,
    sequence: u64,
    patience: Duration,
) -> Result<bool, StoreError> {
    let until = Instant::now() + patience;
    loop {
        if overlay.holds(sequence) {
            return Ok(true);
        }
        let position = session.call(PATIENCE, async |client| {
            let row = client.query_typed_one(sql!("position_get"), &[]).await?;
            Ok(unsigned(row.try_get(0)?))
        })?;
        if position >= sequence {
            return Ok(true);
        }
        if Instant::now() >= until {
            return Ok(false);
        }
        overlay.wait_for_position(sequence, until.min(Instant::now() + LOOK_AGAIN));
    }
}

fn numbers(task: TaskId) -> (i64, i64) {
    (signed(task.node.0), task.index().map_or(0, i64::from))
}
