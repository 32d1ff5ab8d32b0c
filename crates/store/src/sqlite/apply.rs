//! What each write does to the tables: one `match`, each arm one or two statements.
//!
//! The meaning is that of [`memory::Tables`](crate::memory::Tables); nothing is checked or decided here either. A node
//! that is new in an entry is written once, as it is at the entry's end.

use super::attempts::Attempts;
use super::columns::{Content, Json, Word, micros, signed};
use super::sql;
use crate::contract::{AUDIT_STAYS, Entry, KEPT_ENTRIES};
use crate::{codec, identity, memory, words};
use rusqlite::{CachedStatement, Connection, Params};
use std::cell::RefCell;
use std::collections::{BTreeMap, btree_map};
use tidegate_core::ids::{NodeId, TaskId};
use tidegate_core::protocol::{
    AuditRow, DeclaredRow, GrantRow, Lease, LimitRow, NodeRow, Payload, Rendered, Stop, Tally, TokenRow,
    WorkerRow, Write,
};
use tidegate_core::state::State;
use tidegate_core::time::Moment;

/// Makes all of an entry's writes in the transaction that is open.
pub fn apply(connection: &Connection, entry: &Entry, batch: &str) -> rusqlite::Result<()> {
    let attempts = Attempts::of(&entry.writes);
    let tables = Tables { connection, attempts, statements: RefCell::default() };
    let new = new_nodes(entry);
    let is_said = |write: &&Write| is_about(write, &new) || tables.attempts.say(write);
    entry.writes.iter().filter(|write| !is_said(write)).try_for_each(|write| tables.write(write))?;
    for task in new.tasks.values() {
        tables.add_node(&task.row)?;
        tables.add_output(TaskId::node(task.row.node), task.output.as_ref())?;
    }
    for &letter in &entry.letters {
        tables.run(sql!("letter_remove"), [signed(letter)])?;
    }
    let bytes =
        codec::encode(entry).map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
    tables.run(sql!("journal_add"), (signed(entry.sequence), bytes))?;
    tables.run(sql!("journal_trim"), [signed(entry.sequence.saturating_sub(KEPT_ENTRIES))])?;
    let head = (signed(entry.sequence), batch, signed(entry.next), entry.now.0, entry.digest.map(signed));
    tables.run(sql!("head_set"), head).map(drop)
}

/// Nodes that are added by this entry and about which it says more: as they are at its end. Nothing if there are none,
/// which a look at the numbers tells, because numbers rise.
fn new_nodes(entry: &Entry) -> memory::Tables {
    let mut new = memory::Tables::default();
    let first = entry.writes.iter().filter_map(|write| match write {
        Write::NodeAdded(row) => Some(row.node),
        _ => None,
    });
    let Some(first) = first.min() else { return new };
    if entry.writes.iter().filter_map(node).any(|node| node >= first) {
        entry.writes.iter().filter(|write| !is_elsewhere(write)).for_each(|write| new.write(write));
    }
    new
}

/// The node that a write changes.
fn node(write: &Write) -> Option<NodeId> {
    match write {
        Write::Entered { node, .. } | Write::Ranked { node, .. } | Write::Paused { node, .. } => Some(*node),
        Write::Granted { task, .. }
        | Write::Moved { task, .. }
        | Write::Ended { task, .. }
        | Write::Stopping { task, .. } => task.index().is_none().then_some(task.node),
        _ => None,
    }
}

/// Whether a write is about items or what is not a task at all.
fn is_elsewhere(write: &Write) -> bool {
    node(write).is_none() && !matches!(write, Write::NodeAdded(_) | Write::Renewed { .. })
}

/// Whether all that a write says is in these nodes. Renewals may be about others too, and do no harm here.
fn is_about(write: &Write, new: &memory::Tables) -> bool {
    let node = match write {
        Write::NodeAdded(row) => Some(row.node),
        write => node(write),
    };
    node.is_some_and(|node| new.tasks.contains_key(&node))
}

struct Tables<'a> {
    connection: &'a Connection,
    attempts: Attempts,
    /// Those that were used, by where their text is: to look for the text itself takes as long as a small statement.
    statements: RefCell<BTreeMap<(*const u8, usize), CachedStatement<'a>>>,
}

impl Tables<'_> {
    fn run(&self, sql: &'static str, params: impl Params) -> rusqlite::Result<usize> {
        let mut statements = self.statements.borrow_mut();
        match statements.entry((sql.as_ptr(), sql.len())) {
            btree_map::Entry::Occupied(mut known) => known.get_mut().execute(params),
            btree_map::Entry::Vacant(new) => new.insert(self.connection.prepare_cached(sql)?).execute(params),
        }
    }

    fn write(&self, write: &Write) -> rusqlite::Result<()> {
        match write {
            Write::NodeAdded(row) => self.add_node(row),
            Write::ItemsAdded { step, from, items, at } => self.add_items(*step, *from, items, *at),
            Write::Entered { node, state, at } => {
                self.run(sql!("task_enter"), (id(*node), Word(*state), at.0)).map(drop)
            }
            Write::Granted { task, grant, number } => self.grant(*task, grant, *number),
            Write::Moved { task, state, due, tally, error, at: _ } => {
                self.move_to(*task, *state, *due, *tally, error.as_deref())
            }
            Write::Ended { task, state, output, error, at } => {
                self.end(*task, *state, output.as_ref(), error.as_deref(), *at)
            }
            Write::ItemsEnded { step, from, to, state, at } => {
                self.run(sql!("items_end"), (id(*step), from, to, Word(*state), at.0)).map(drop)
            }
            Write::Stopping { task, why, error, at: _ } => self.stop(*task, *why, error.as_deref()),
            Write::Renewed { leases, until } => leases.iter().try_for_each(|lease| self.renew(lease, *until)),
            Write::Ranked { node, priority, root } => {
                self.run(sql!("task_rank"), (id(*node), priority, signed(*root))).map(drop)
            }
            Write::Paused { node, paused } => self.run(sql!("task_pause"), (id(*node), paused)).map(drop),
            Write::LimitSet(row) => self.set_limit(row),
            Write::PaceTaken { key, pace } => {
                self.run(sql!("pace_set"), (Json(key), key.to_string(), Json(pace))).map(drop)
            }
            Write::Declared(row) => self.declare(row),
            Write::WorkerJoined(row) => self.set_worker(row),
            Write::WorkerGone { worker, at: _ } => {
                self.run(sql!("worker_remove"), [worker.as_str()]).map(drop)
            }
            Write::ItemEntered { step, index, at } => {
                self.run(sql!("item_enter"), (id(*step), index, at.0)).map(drop)
            }
            Write::TokenSet(row) => self.set_token(row),
            Write::TokenGone { id } => self.run(sql!("token_remove"), [id.as_str()]).map(drop),
            Write::Audited(row) => self.audit(row),
        }
    }

    fn add_node(&self, row: &NodeRow) -> rusqlite::Result<()> {
        let (kind, name, step) = words::of_body(&row.body);
        let (life, grant) = (&row.life, row.life.grant.as_ref());
        self.run(
            sql!("task_add"),
            rusqlite::params![
                id(row.node),
                row.parent.map(id),
                kind,
                name,
                step,
                row.body.id().map(|id| id.to_string()),
                Word(life.state),
                row.priority,
                signed(row.root),
                row.accepted.0,
                micros(life.due),
                micros(life.started),
                micros(life.ended),
                life.tally.started,
                life.tally.failures,
                life.tally.losses,
                grant.map(|grant| grant.worker.as_str()),
                grant.map(|grant| grant.epoch.incarnation),
                grant.map(|grant| signed(grant.epoch.grant)),
                grant.map(|grant| grant.at.0),
                grant.map(|grant| grant.until.0),
                grant.map(|grant| signed(grant.length.0)),
                life.stop.map(Word),
                life.paused,
                life.entered,
                life.error,
                row.body.reuses().map(id),
            ],
        )?;
        let key = identity::idempotency(&row.body);
        let spec = (
            id(row.node),
            key.map(|key| key.key.as_str()),
            key.map(|key| signed(key.content)),
            Json(&row.body),
            row.payload.as_ref().map(Content),
        );
        self.run(sql!("task_spec_add"), spec).map(drop)
    }

    fn add_items(&self, step: NodeId, from: u32, items: &[Rendered], at: Moment) -> rusqlite::Result<()> {
        let mut rows = self.connection.prepare_cached(sql!("item_add"))?;
        let mut orders = self.connection.prepare_cached(sql!("item_order_add"))?;
        for (index, item) in (from..).zip(items) {
            rows.execute((id(step), index, item.key.as_ref().map(|key| key.as_str()), at.0))?;
            orders.execute((id(step), index, Content(&item.order)))?;
        }
        Ok(())
    }

    fn grant(&self, task: TaskId, grant: &GrantRow, number: u32) -> rusqlite::Result<()> {
        let GrantRow { epoch, worker, at, until, length } = grant;
        let (worker, incarnation, grant) = (worker.as_str(), epoch.incarnation, signed(epoch.grant));
        let (node, at, until, length) = (id(task.node), at.0, until.0, signed(length.0));
        match task.index() {
            None => {
                let row = (node, number, worker, incarnation, grant, at, until, length);
                self.run(sql!("task_grant"), row)
            }
            Some(index) => {
                let row = (node, index, number, worker, incarnation, grant, at, until, length);
                self.run(sql!("item_grant"), row)
            }
        }
        .map(drop)
    }

    fn move_to(
        &self,
        task: TaskId,
        state: State,
        due: Option<Moment>,
        tally: Tally,
        error: Option<&str>,
    ) -> rusqlite::Result<()> {
        let (node, state, due) = (id(task.node), Word(state), micros(due));
        let Tally { started, failures, losses } = tally;
        match task.index() {
            None => self.run(sql!("task_move"), (node, state, due, started, failures, losses, error)),
            Some(index) => {
                self.run(sql!("item_move"), (node, index, state, due, started, failures, losses, error))
            }
        }
        .map(drop)
    }

    fn end(
        &self,
        task: TaskId,
        state: State,
        output: Option<&Payload>,
        error: Option<&str>,
        at: Moment,
    ) -> rusqlite::Result<()> {
        let (node, state, attempt) = (id(task.node), Word(state), self.attempts.get(task));
        let changed = match (task.index(), attempt.map(|attempt| (attempt.number, attempt.granted.0))) {
            (None, None) => self.run(sql!("task_end"), (node, state, at.0, error))?,
            (None, Some((number, granted))) => {
                self.run(sql!("task_run"), (node, state, at.0, error, number, granted))?
            }
            (Some(index), None) => self.run(sql!("item_end"), (node, index, state, at.0, error))?,
            (Some(index), Some((number, granted))) => {
                self.run(sql!("item_run"), (node, index, state, at.0, error, number, granted))?
            }
        };
        self.add_output(task, output.filter(|_| changed > 0))
    }

    fn add_output(&self, task: TaskId, output: Option<&Payload>) -> rusqlite::Result<()> {
        let (Some(output), node) = (output.map(Content), id(task.node)) else { return Ok(()) };
        match task.index() {
            None => self.run(sql!("task_output_add"), (node, output)),
            Some(index) => self.run(sql!("item_output_add"), (node, index, output)),
        }
        .map(drop)
    }

    fn stop(&self, task: TaskId, why: Stop, error: Option<&str>) -> rusqlite::Result<()> {
        match task.index() {
            None => self.run(sql!("task_stop"), (id(task.node), Word(why), error)),
            Some(index) => self.run(sql!("item_stop"), (id(task.node), index, Word(why), error)),
        }
        .map(drop)
    }

    fn renew(&self, lease: &Lease, until: Moment) -> rusqlite::Result<()> {
        let Lease { task, epoch } = lease;
        let (node, incarnation, grant) = (id(task.node), epoch.incarnation, signed(epoch.grant));
        match task.index() {
            None => self.run(sql!("task_renew"), (node, incarnation, grant, until.0)),
            Some(index) => self.run(sql!("item_renew"), (node, index, incarnation, grant, until.0)),
        }
        .map(drop)
    }

    /// A row that says nothing any more goes.
    fn set_limit(&self, row: &LimitRow) -> rusqlite::Result<()> {
        let LimitRow { key, set, paused } = row;
        if set.is_none() && !paused {
            return self.run(sql!("limit_clear"), [Json(key)]).map(drop);
        }
        self.run(sql!("limit_set"), (Json(key), key.to_string(), set.as_ref().map(Json), paused)).map(drop)
    }

    fn declare(&self, row: &DeclaredRow) -> rusqlite::Result<()> {
        let (kind, name, version) = words::of_declared(row);
        self.run(sql!("declare"), (kind, name, version, Json(row))).map(drop)
    }

    fn set_token(&self, row: &TokenRow) -> rusqlite::Result<()> {
        let TokenRow { id, name, hash, scopes, by, at, until } = row;
        let until = until.map(|until| until.0);
        let row = (id.as_str(), name.as_str(), hash, Json(scopes), by.as_str(), at.0, until);
        self.run(sql!("token_set"), row).map(drop)
    }

    fn audit(&self, row: &AuditRow) -> rusqlite::Result<()> {
        let AuditRow { number, at, by, what, about, more } = row;
        self.run(sql!("audit_add"), (signed(*number), at.0, by.as_str(), what, about, more))?;
        self.run(sql!("audit_forget"), [(*at - AUDIT_STAYS).0]).map(drop)
    }

    fn set_worker(&self, row: &WorkerRow) -> rusqlite::Result<()> {
        let WorkerRow { worker, incarnation, skills, slots } = row;
        let row = (worker.as_str(), signed(*incarnation), Json(skills), slots.process, slots.io);
        self.run(sql!("worker_set"), row).map(drop)
    }
}

fn id(node: NodeId) -> i64 {
    signed(node.0)
}
