//! Makes the tables follow the journal, on a thread and a connection of its own.
//!
//! Any server may do it, one at a time: the position row is locked meanwhile, and whoever does not get it looks where
//! the other has got to. Killed anywhere, it has done all of a step or nothing.

use super::columns::{Time, signed, unsigned};
use super::fault::Fault;
use super::overlay::{Overlay, Wake};
use super::project::project;
use super::session::Session;
use super::{ENTRIES_BYTES, sql};
use crate::codec;
use crate::contract::{Entry, KEPT_ENTRIES, StoreError};
use crate::fold::Fold;
use std::sync::Arc;
use std::time::Duration;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Row};

/// About how many writes one transaction takes in.
const STEP: usize = 20_000;
/// What one step may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often to look whether somebody else left work behind.
const POLL: Duration = Duration::from_secs(1);
/// Work that comes within this time is done together: a task that comes and goes in it is one row, written once.
const GATHER: Duration = Duration::from_millis(50);
/// How long to leave it to another server that is at it, and how long after something went wrong.
const LEAVE: Duration = Duration::from_millis(10);
const AFTER_FAILURE: Duration = Duration::from_millis(250);

/// Where the tables have got to.
#[derive(Debug)]
pub struct Step {
    pub position: u64,
    /// Somebody else is at it.
    pub is_others: bool,
}

/// Starts the thread. It ends when the overlay says so.
pub fn start(session: Session, overlay: Arc<Overlay>) -> Result<(), StoreError> {
    let thread = std::thread::Builder::new().name("projector".to_owned());
    thread
        .spawn(move || follow(session, &overlay))
        .map(drop)
        .map_err(|error| StoreError::Unusable(error.to_string()))
}

fn follow(mut session: Session, overlay: &Overlay) {
    while overlay.wait_for_work(POLL, GATHER, STEP) != Wake::Stop {
        let pause = match step(&mut session) {
            Ok(step) => {
                overlay.settle(step.position);
                if step.is_others { LEAVE } else { Duration::ZERO }
            }
            Err(problem) => {
                overlay.failed(problem);
                AFTER_FAILURE
            }
        };
        std::thread::sleep(pause);
    }
}

/// One transaction: whatever follows the position, as much as fits.
pub fn step(session: &mut Session) -> Result<Step, StoreError> {
    session.call(PATIENCE, async |client| {
        let (position, last) = look(client).await?;
        if last <= position {
            return Ok(Step { position, is_others: false });
        }
        client.batch_execute("begin").await?;
        client.batch_execute(sql!("idle_most")).await?;
        client.query_typed(sql!("project_settings"), &[]).await?;
        let taken = client.query_typed_opt(sql!("position_take"), &[]).await?;
        let Some(row) = taken else {
            client.batch_execute("rollback").await?;
            return Ok(Step { position, is_others: true });
        };
        let position = unsigned(row.try_get(0)?);
        let advanced = advance(client, position).await?;
        client.batch_execute("commit").await?;
        Ok(Step { position: advanced, is_others: false })
    })
}

/// Where the tables are, and where the journal is.
async fn look(client: &Client) -> Result<(u64, u64), Fault> {
    let row = client.query_typed_one(sql!("position_look"), &[]).await?;
    Ok((unsigned(row.try_get(0)?), row.try_get::<_, Option<i64>>(1)?.map_or(0, unsigned)))
}

/// Brings the tables from `position` as far as one step goes, in the transaction that is open and has the position.
/// Gives how far that is: `position` itself if there is nothing to do.
pub async fn advance(client: &Client, position: u64) -> Result<u64, Fault> {
    let rows = tail(client, position).await?;
    let mut fold = Fold::default();
    for (expected, row) in (position + 1..).zip(&rows) {
        fold.add(&entry(expected, row)?);
    }
    let head = fold.head();
    let reached = head.sequence;
    if rows.is_empty() {
        return expect_end(client, position).await.map(|()| position);
    }
    project(client, &fold).await?;
    let (sequence, next, digest) = (signed(reached), signed(head.next), head.digest.map(signed));
    let columns: super::Columns = &[
        (&sequence, Type::INT8),
        (&next, Type::INT8),
        (&Time(head.now), Type::TIMESTAMPTZ),
        (&digest, Type::INT8),
    ];
    client.execute_typed(sql!("position_set"), columns).await?;
    let kept = |sequence: u64| signed(sequence.saturating_sub(KEPT_ENTRIES));
    let (from, to) = (kept(position), kept(reached));
    let columns: super::Columns = &[(&from, Type::INT8), (&to, Type::INT8)];
    client.execute_typed(sql!("journal_trim"), columns).await?;
    Ok(reached)
}

/// What follows the position, as much as one step takes in; see [`entry`].
pub async fn tail(client: &Client, position: u64) -> Result<Vec<Row>, Fault> {
    let (after, most) = (signed(position), STEP as i64);
    let columns: super::Columns = &[(&after, Type::INT8), (&most, Type::INT8), (&ENTRIES_BYTES, Type::INT8)];
    Ok(client.query_typed(sql!("journal_tail"), columns).await?)
}

/// The entry of this number, or what is wrong with it. Nothing is guessed or stepped over.
pub fn entry(expected: u64, row: &Row) -> Result<Entry, Fault> {
    let found = unsigned(row.try_get(0)?);
    let entry = codec::decode(row.try_get(1)?)?;
    if found != expected || entry.sequence != expected {
        return Err(missing(expected));
    }
    Ok(entry)
}

async fn expect_end(client: &Client, position: u64) -> Result<(), Fault> {
    let (_, last) = look(client).await?;
    if last > position { Err(missing(position + 1)) } else { Ok(()) }
}

fn missing(sequence: u64) -> Fault {
    Fault::Said(StoreError::Broken(format!("entry {sequence} is missing in the journal")))
}
