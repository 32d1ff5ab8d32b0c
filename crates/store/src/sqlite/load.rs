//! What is read back. All of a load is of one moment, however many statements it takes.

use super::columns::{Json, LIFE, Word, content, life, name, signed, unsigned};
use super::sql;
use crate::codec;
use crate::contract::{
    ENTRIES_BYTES, Ended, Entry, Found, InState, LETTERS_BYTES, Letter, Loaded, Sought, Wanted,
};
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Params, Row};
use std::collections::BTreeMap;
use std::sync::Arc;
use tidegate_core::admission::{LimitKey, SlotCounts};
use tidegate_core::ids::{Name, NodeId, RunId, TaskId};
use tidegate_core::protocol::{
    AuditRow, DeclaredRow, ItemRow, LimitRow, NodeRow, Pace, Payload, Snapshot, TokenRow, WorkerRow,
};
use tidegate_core::state::State;
use tidegate_core::time::Moment;
use tidegate_core::{LoopTally, RESIDENT};

/// From so many on it pays to read with two.
const MANY: i64 = 1_000;

/// Where nobody commits meanwhile, another connection may help.
pub fn load(connection: &mut Connection, helper: Option<Connection>) -> rusqlite::Result<Loaded> {
    let connection = connection.transaction()?;
    let read = |row: &Row| {
        let digest = row.get::<_, Option<i64>>(6)?.map(unsigned);
        Ok((unsigned(row.get(0)?), unsigned(row.get(4)?), Moment(row.get(5)?), digest))
    };
    let (sequence, next, now, digest) = connection.prepare_cached(sql!("head_get"))?.query_row([], read)?;
    let snapshot = Snapshot {
        nodes: nodes(&connection, helper)?,
        items: all(&connection, sql!("load_items"), [], item)?,
        loops: loops(&connection)?,
        limits: limits(&connection)?,
        paces: paces(&connection)?,
        declared: declared(&connection)?,
        workers: all(&connection, sql!("load_workers"), [], worker)?,
        next,
        now,
    };
    Ok(Loaded { snapshot, sequence, digest })
}

/// In the order of their numbers.
fn nodes(connection: &Connection, helper: Option<Connection>) -> rusqlite::Result<Vec<NodeRow>> {
    let mut nodes = open_nodes(connection, helper)?;
    let ended = all(connection, sql!("load_ended_steps"), [RESIDENT as i64], node)?;
    if !ended.is_empty() {
        nodes.extend(ended);
        nodes.sort_by_key(|row| row.node);
    }
    Ok(nodes)
}

/// To read rows and to make something of them takes long where there are many: two do it at once.
fn open_nodes(connection: &Connection, helper: Option<Connection>) -> rusqlite::Result<Vec<NodeRow>> {
    let between = |connection: &Connection, from: i64, to: i64| {
        all(connection, sql!("load_nodes"), (RESIDENT as i64, from, to), node)
    };
    let ends = |row: &Row| Ok((row.get(0)?, row.get(1)?));
    let (Some(first), Some(last)) = connection.query_row(sql!("load_ends"), [], ends)? else {
        return Ok(Vec::new());
    };
    let (Some(helper), true) = (helper, last - first >= MANY) else {
        return between(connection, first, last);
    };
    let middle = first + (last - first) / 2;
    std::thread::scope(|scope| {
        let rest = scope.spawn(move || between(&helper, middle + 1, last));
        let mut nodes = between(connection, first, middle)?;
        nodes.extend(rest.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
        Ok(nodes)
    })
}

pub fn find(connection: &Connection, sought: &[Sought]) -> rusqlite::Result<Vec<Option<Found>>> {
    sought.iter().map(|sought| find_one(connection, sought)).collect()
}

fn find_one(connection: &Connection, sought: &Sought) -> rusqlite::Result<Option<Found>> {
    let read = |row: &Row| {
        let content = row.get::<_, Option<i64>>(2)?.map(unsigned);
        Ok(Found { node: id(row, 0)?, id: run_id(row, 1)?, content })
    };
    match sought {
        Sought::Id(id) => {
            connection.prepare_cached(sql!("task_find_id"))?.query_row([id.to_string()], read).optional()
        }
        Sought::Key(key) => {
            connection.prepare_cached(sql!("task_find_key"))?.query_row([key.as_str()], read).optional()
        }
        Sought::Part(node) => {
            connection.prepare_cached(sql!("task_find_part"))?.query_row([signed(node.0)], read).optional()
        }
    }
}

pub fn entries(
    connection: &mut Connection,
    after: u64,
    most: usize,
) -> rusqlite::Result<Option<Vec<Arc<Entry>>>> {
    let connection = connection.transaction()?;
    let first: Option<i64> =
        connection.prepare_cached(sql!("journal_first"))?.query_row([], |row| row.get(0))?;
    if first.is_some_and(|first| after.saturating_add(1) < unsigned(first)) {
        return Ok(None);
    }
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let mut statement = connection.prepare_cached(sql!("journal_list"))?;
    let mut rows = statement.query((signed(after), most))?;
    let (mut entries, mut bytes) = (Vec::new(), 0);
    while bytes < ENTRIES_BYTES
        && let Some(row) = rows.next()?
    {
        bytes += row.get_ref(0)?.as_blob()?.len();
        entries.push(entry(row)?);
    }
    Ok(Some(entries))
}

fn entry(row: &Row) -> rusqlite::Result<Arc<Entry>> {
    codec::decode(row.get_ref(0)?.as_blob()?).map(Arc::new).map_err(|error| unreadable(0, Type::Blob, error))
}

pub fn submitted(connection: &Connection, wanted: &Wanted, most: u32) -> rusqlite::Result<Vec<NodeRow>> {
    let before = wanted.before.map_or(i64::MAX, |node| signed(node.0));
    let state = wanted.state.map(Word);
    let name = wanted.name.as_ref().map(Name::as_str);
    all(connection, sql!("browse_roots"), (before, state, name, most), node)
}

pub fn tree(connection: &Connection, root: NodeId) -> rusqlite::Result<Vec<NodeRow>> {
    all(connection, sql!("browse_tree"), [signed(root.0)], node)
}

pub fn outline(connection: &Connection, root: NodeId) -> rusqlite::Result<Vec<NodeRow>> {
    all(connection, sql!("browse_outline"), [signed(root.0)], node)
}

pub fn item_states(connection: &Connection, step: NodeId) -> rusqlite::Result<Vec<InState>> {
    let read = |row: &Row| {
        let state = row.get::<_, Word<State>>(0)?.0;
        Ok(InState { state, items: row.get(1)?, first: row.get(2)? })
    };
    all(connection, sql!("browse_items"), [signed(step.0)], read)
}

pub fn declared(connection: &Connection) -> rusqlite::Result<Vec<DeclaredRow>> {
    all(connection, sql!("load_declared"), [], |row| Ok(row.get::<_, Json<_>>(0)?.0))
}

pub fn tokens(connection: &Connection) -> rusqlite::Result<Vec<TokenRow>> {
    all(connection, sql!("token_list"), [], |row| {
        Ok(TokenRow {
            id: given(row, 0)?,
            name: given(row, 1)?,
            hash: row.get(2)?,
            scopes: row.get::<_, Json<_>>(3)?.0,
            by: given(row, 4)?,
            at: Moment(row.get(5)?),
            until: row.get::<_, Option<i64>>(6)?.map(Moment),
        })
    })
}

pub fn audit(connection: &Connection, before: Option<u64>, most: u32) -> rusqlite::Result<Vec<AuditRow>> {
    let before = before.map_or(i64::MAX, signed);
    all(connection, sql!("audit_list"), (before, most), |row| {
        Ok(AuditRow {
            number: unsigned(row.get(0)?),
            at: Moment(row.get(1)?),
            by: given(row, 2)?,
            what: row.get(3)?,
            about: row.get(4)?,
            more: row.get(5)?,
        })
    })
}

/// A name that is never null.
fn given(row: &Row, column: usize) -> rusqlite::Result<Name> {
    row.get::<_, String>(column).map(Name::from)
}

pub fn sequence(connection: &Connection) -> rusqlite::Result<u64> {
    connection.prepare_cached(sql!("head_get"))?.query_row([], |row| row.get(0)).map(unsigned)
}

pub fn letters(connection: &Connection, after: u64, most: usize) -> rusqlite::Result<Vec<Letter>> {
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let mut statement = connection.prepare_cached(sql!("letter_list"))?;
    let mut rows = statement.query((signed(after), most))?;
    let (mut letters, mut bytes) = (Vec::new(), 0);
    while let Some(row) = rows.next()? {
        let content: Vec<u8> = row.get(2)?;
        bytes += content.len();
        if bytes > LETTERS_BYTES && !letters.is_empty() {
            break;
        }
        letters.push(Letter { number: unsigned(row.get(0)?), id: run_id(row, 1)?, content });
    }
    Ok(letters)
}

pub fn payload(connection: &Connection, task: TaskId) -> rusqlite::Result<Option<Payload>> {
    let found = match task.index() {
        None => {
            let mut statement = connection.prepare_cached(sql!("task_payload_get"))?;
            statement.query_row([signed(task.node.0)], |row| content(row, 0)).optional()?
        }
        Some(index) => {
            let mut statement = connection.prepare_cached(sql!("item_payload_get"))?;
            statement.query_row((signed(task.node.0), index), |row| content(row, 0)).optional()?
        }
    };
    Ok(found.flatten())
}

pub fn ended(connection: &Connection, task: TaskId) -> rusqlite::Result<Option<Ended>> {
    match task.index() {
        None => {
            let mut statement = connection.prepare_cached(sql!("task_ended_get"))?;
            statement.query_row([signed(task.node.0)], how_it_ended).optional()
        }
        Some(index) => {
            let items = ended_items(connection, task.node, index, index.saturating_add(1))?;
            Ok(items.into_iter().next().map(|(_, ended)| ended))
        }
    }
}

pub fn ended_items(
    connection: &Connection,
    step: NodeId,
    from: u32,
    to: u32,
) -> rusqlite::Result<Vec<(u32, Ended)>> {
    let read = |row: &Row| Ok((row.get(4)?, how_it_ended(row)?));
    all(connection, sql!("item_ended_get"), (signed(step.0), from, to), read)
}

fn all<T>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    read: impl FnMut(&Row) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    connection.prepare_cached(sql)?.query_map(params, read)?.collect()
}

fn node(row: &Row) -> rusqlite::Result<NodeRow> {
    Ok(NodeRow {
        node: id(row, LIFE)?,
        parent: row.get::<_, Option<i64>>(LIFE + 1)?.map(|parent| NodeId(unsigned(parent))),
        root: unsigned(row.get(LIFE + 2)?),
        priority: row.get(LIFE + 3)?,
        accepted: Moment(row.get(LIFE + 4)?),
        body: row.get::<_, Json<_>>(LIFE + 5)?.0,
        payload: content(row, LIFE + 6)?,
        life: life(row)?,
    })
}

fn item(row: &Row) -> rusqlite::Result<ItemRow> {
    Ok(ItemRow {
        step: id(row, LIFE)?,
        index: row.get(LIFE + 1)?,
        key: name(row, LIFE + 2)?,
        life: life(row)?,
    })
}

fn loops(connection: &Connection) -> rusqlite::Result<BTreeMap<NodeId, (u32, LoopTally)>> {
    let read = |row: &Row| {
        let (state, is_ended, count): (Word<State>, bool, u32) = (row.get(1)?, row.get(2)?, row.get(3)?);
        Ok((id(row, 0)?, state.0, is_ended, count))
    };
    let mut loops = BTreeMap::<NodeId, (u32, LoopTally)>::new();
    for (step, state, is_ended, count) in all(connection, sql!("load_loops"), [], read)? {
        let (rows, ended) = loops.entry(step).or_default();
        *rows += count;
        if is_ended {
            (0..count).for_each(|_| ended.count(state));
        }
    }
    Ok(loops)
}

/// In the order of their keys, which the database cannot compare.
fn limits(connection: &Connection) -> rusqlite::Result<Vec<LimitRow>> {
    let read = |row: &Row| {
        let set = row.get::<_, Option<Json<_>>>(1)?.map(|set| set.0);
        Ok(LimitRow { key: row.get::<_, Json<_>>(0)?.0, set, paused: row.get(2)? })
    };
    let mut limits = all(connection, sql!("load_limits"), [], read)?;
    limits.sort_by(|a, b| a.key.cmp(&b.key));
    Ok(limits)
}

fn paces(connection: &Connection) -> rusqlite::Result<Vec<(LimitKey, Pace)>> {
    let read = |row: &Row| Ok((row.get::<_, Json<LimitKey>>(0)?.0, row.get::<_, Json<Pace>>(1)?.0));
    let mut paces = all(connection, sql!("load_paces"), [], read)?;
    paces.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(paces)
}

fn worker(row: &Row) -> rusqlite::Result<WorkerRow> {
    Ok(WorkerRow {
        worker: given(row, 0)?,
        incarnation: unsigned(row.get(1)?),
        skills: row.get::<_, Json<_>>(2)?.0,
        slots: SlotCounts { process: row.get(3)?, io: row.get(4)? },
    })
}

/// Reads the first columns of `task_ended_get.sql` and `item_ended_get.sql`.
fn how_it_ended(row: &Row) -> rusqlite::Result<Ended> {
    Ok(Ended {
        state: row.get::<_, Word<_>>(0)?.0,
        output: content(row, 1)?,
        error: row.get(2)?,
        attempts: row.get(3)?,
    })
}

fn id(row: &Row, column: usize) -> rusqlite::Result<NodeId> {
    Ok(NodeId(unsigned(row.get(column)?)))
}

fn run_id(row: &Row, column: usize) -> rusqlite::Result<RunId> {
    let text = row.get_ref(column)?.as_str()?;
    RunId::parse(text).ok_or_else(|| unreadable(column, Type::Text, format!("`{text}` is no id")))
}

fn unreadable(
    column: usize,
    kind: Type,
    error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, kind, error.into())
}
