//! Writes a fold into the tables, in the transaction that is open: a few statements, however many rows.
//!
//! All of them are sent at once and answered in order.

use super::batch::Batch;
use super::columns::{Time, signed};
use super::fault::Fault;
use super::{settings, sql};
use crate::fold::{Change, Entered, Fold, Range};
use crate::memory::{Item, Task};
use crate::{codec, identity, words};
use futures_util::future::{BoxFuture, FutureExt, try_join_all};
use std::collections::BTreeMap;
use tidegate_core::ids::{Epoch, NodeId, TaskId};
use tidegate_core::protocol::{Body, Payload};
use tidegate_core::state::State;
use tidegate_core::time::Moment;
use tokio_postgres::Client;
use tokio_postgres::types::{ToSql, Type};

/// With its body, encoded.
type NewTask<'a> = (&'a Task, Vec<u8>);
type NewItem<'a> = (&'a (NodeId, u32), &'a Item);
type Changed<'a> = (&'a TaskId, &'a Change);
type Renewal = (TaskId, Epoch, Moment);

pub async fn project(client: &Client, fold: &Fold) -> Result<(), Fault> {
    let mut tasks = Vec::with_capacity(fold.new.tasks.len());
    for task in fold.new.tasks.values() {
        tasks.push((task, codec::encode_part(&task.row.body)?));
    }
    let (ended, open): (Vec<NewTask>, Vec<NewTask>) =
        tasks.into_iter().partition(|(task, _)| task.row.life.ended.is_some());
    let (ended_items, open_items): (Vec<NewItem>, Vec<NewItem>) =
        fold.new.items.iter().partition(|(_, item)| item.life.ended.is_some());
    let changes = || fold.changes.iter().filter(|(_, change)| change.is_more_than_renewed());
    let (ends, moves): (Vec<Changed>, Vec<Changed>) = changes().partition(|(_, change)| change.end.is_some());
    let ([ends, moves], [item_ends, item_moves]) = (
        [&ends, &moves]
            .map(|all| all.iter().copied().filter(|(task, _)| task.index().is_none()).collect::<Vec<_>>()),
        [&ends, &moves]
            .map(|all| all.iter().copied().filter(|(task, _)| task.index().is_some()).collect::<Vec<_>>()),
    );
    let (renewals, item_renewals): (Vec<Renewal>, Vec<Renewal>) =
        renewals(fold).partition(|(task, ..)| task.index().is_none());
    // Renewals first: what happens to a grant afterwards is in the changes. Then what was there before, single items
    // before ranges, which find the rest; what is new comes after all that is not about it.
    let mut statements: Vec<BoxFuture<Result<(), Fault>>> = vec![
        renew_tasks(client, &renewals).boxed(),
        renew_items(client, &item_renewals).boxed(),
        change_tasks(client, &moves).boxed(),
        end_tasks(client, &ends).boxed(),
        change_items(client, &item_moves).boxed(),
        end_items(client, &item_ends).boxed(),
    ];
    statements.extend(fold.ranges.iter().map(|range| end_range(client, range).boxed()));
    statements.extend([
        add_open(client, &open).boxed(),
        add_ended(client, &ended).boxed(),
        add_open_items(client, &open_items).boxed(),
        add_ended_items(client, &ended_items).boxed(),
        settings::write(client, fold).boxed(),
    ]);
    try_join_all(statements).await.map(drop)
}

fn renewals(fold: &Fold) -> impl Iterator<Item = Renewal> {
    fold.changes
        .iter()
        .flat_map(|(task, change)| change.renewed.iter().map(|&(epoch, until)| (*task, epoch, until)))
}

fn index(task: &TaskId) -> Option<u64> {
    task.index().map(u64::from)
}

/// The first columns of a new task: everything that never changes but its body.
fn identity_of<'a>(rows: &'a [NewTask<'a>]) -> Batch<'a, NewTask<'a>> {
    let key = |task: &'a NewTask<'a>| identity::idempotency(&task.0.row.body);
    Batch::of(rows)
        .number(|(task, _)| Some(task.row.node.0))
        .number(|(task, _)| task.row.parent.map(|parent| parent.0))
        .word(|(task, _)| Some(words::of_body(&task.row.body).0))
        .word(|(task, _)| words::of_body(&task.row.body).1)
        .number(|(task, _)| words::of_body(&task.row.body).2.map(u64::from))
        .id(|(task, _)| task.row.body.id().map(|id| id.0))
        .word(move |task| key(task).map(|key| key.key.as_str()))
        .number(move |task| key(task).map(|key| key.content))
        .json(|(task, _)| tags(&task.row.body))
        .word(|(task, _)| Some(task.row.life.state.as_str()))
        .priority(|(task, _)| Some(task.row.priority))
        .number(|(task, _)| Some(task.row.root))
        .time(|(task, _)| Some(task.row.accepted))
}

/// Most have none, and then nothing is written.
fn tags(body: &Body) -> Option<String> {
    let tags: BTreeMap<&str, &str> =
        body.tags().iter().map(|(tag, value)| (tag.as_str(), value.as_str())).collect();
    // A map of text to text is always JSON.
    (!tags.is_empty()).then(|| serde_json::to_string(&tags).unwrap_or_default())
}

async fn add_open(client: &Client, rows: &[NewTask<'_>]) -> Result<(), Fault> {
    identity_of(rows)
        .time(|(task, _)| task.row.life.due)
        .time(|(task, _)| task.row.life.started)
        .number(|(task, _)| Some(task.row.life.tally.started.into()))
        .number(|(task, _)| Some(task.row.life.tally.failures.into()))
        .number(|(task, _)| Some(task.row.life.tally.losses.into()))
        .grant(|(task, _)| task.row.life.grant.as_ref())
        .word(|(task, _)| task.row.life.stop.map(words::of_stop))
        .flag(|(task, _)| Some(task.row.life.paused))
        .flag(|(task, _)| Some(task.row.life.entered))
        .word(|(task, _)| task.row.life.error.as_deref())
        .bytes(|(_, body)| Some(body))
        .bytes(|(task, _)| task.row.payload.as_ref().map(Payload::bytes))
        .run(client, sql!("open_task_add"))
        .await
}

async fn add_ended(client: &Client, rows: &[NewTask<'_>]) -> Result<(), Fault> {
    identity_of(rows)
        .time(|(task, _)| task.row.life.started)
        .time(|(task, _)| task.row.life.ended)
        .number(|(task, _)| Some(task.row.life.tally.started.into()))
        .number(|(task, _)| Some(task.row.life.tally.failures.into()))
        .number(|(task, _)| Some(task.row.life.tally.losses.into()))
        .word(|(task, _)| task.row.life.stop.map(words::of_stop))
        .flag(|(task, _)| Some(task.row.life.paused))
        .flag(|(task, _)| Some(task.row.life.entered))
        .word(|(task, _)| task.row.life.error.as_deref())
        .bytes(|(_, body)| Some(body))
        .bytes(|(task, _)| task.row.payload.as_ref().map(Payload::bytes))
        .bytes(|(task, _)| task.output.as_ref().map(Payload::bytes))
        .number(|(task, _)| task.row.body.reuses().map(|run| run.0))
        .run(client, sql!("ended_task_add"))
        .await
}

/// What every change may set, after the columns that say of which row: state, attempts, failures, losses, start.
fn progress<'a>(batch: Batch<'a, Changed<'a>>) -> Batch<'a, Changed<'a>> {
    batch
        .word(|(_, change)| change.state.map(State::as_str))
        .number(|(_, change)| change.attempts.map(u64::from))
        .number(|(_, change)| change.faults.map(|(failures, _)| failures.into()))
        .number(|(_, change)| change.faults.map(|(_, losses)| losses.into()))
        .time(|(_, change)| change.started)
}

/// What a change of an open row may set besides.
fn hold<'a>(batch: Batch<'a, Changed<'a>>) -> Batch<'a, Changed<'a>> {
    batch
        .flag(|(_, change)| Some(change.due.is_some()))
        .time(|(_, change)| change.due.flatten())
        .flag(|(_, change)| Some(change.stop.is_some()))
        .word(|(_, change)| change.stop.flatten().map(words::of_stop))
        .flag(|(_, change)| Some(change.error.is_some()))
        .word(|(_, change)| change.error.as_ref()?.as_deref())
        .flag(|(_, change)| Some(change.grant.is_some()))
        .grant(|(_, change)| change.grant.as_ref()?.as_ref())
}

/// What only tasks have.
fn standing<'a>(batch: Batch<'a, Changed<'a>>) -> Batch<'a, Changed<'a>> {
    batch
        .flag(|(_, change)| change.paused)
        .word(|(_, change)| {
            change.entered.map(|entered| match entered {
                Entered::Yes => "yes",
                Entered::IfStep => "if_step",
            })
        })
        .priority(|(_, change)| change.rank.map(|(priority, _)| priority))
        .number(|(_, change)| change.rank.map(|(_, root)| root))
}

async fn change_tasks(client: &Client, rows: &[Changed<'_>]) -> Result<(), Fault> {
    let batch = Batch::of(rows).number(|(task, _)| Some(task.node.0));
    standing(hold(progress(batch))).run(client, sql!("open_task_change")).await
}

async fn end_tasks(client: &Client, rows: &[Changed<'_>]) -> Result<(), Fault> {
    let batch = progress(Batch::of(rows).number(|(task, _)| Some(task.node.0)))
        .flag(|(_, change)| Some(change.stop.is_some()))
        .word(|(_, change)| change.stop.flatten().map(words::of_stop))
        .word(|(_, change)| change.error.as_ref()?.as_deref());
    standing(batch)
        .time(|(_, change)| change.end.as_ref().map(|end| end.at))
        .bytes(|(_, change)| change.end.as_ref()?.output.as_ref().map(Payload::bytes))
        .run(client, sql!("open_task_end"))
        .await
}

async fn renew_tasks(client: &Client, rows: &[Renewal]) -> Result<(), Fault> {
    let batch = Batch::of(rows).number(|(task, ..)| Some(task.node.0));
    renewed(batch).run(client, sql!("open_task_renew")).await
}

async fn renew_items(client: &Client, rows: &[Renewal]) -> Result<(), Fault> {
    let batch = Batch::of(rows).number(|(task, ..)| Some(task.node.0)).number(|(task, ..)| index(task));
    renewed(batch).run(client, sql!("open_item_renew")).await
}

fn renewed<'a>(batch: Batch<'a, Renewal>) -> Batch<'a, Renewal> {
    batch
        .number(|(_, epoch, _)| Some(epoch.incarnation.into()))
        .number(|(_, epoch, _)| Some(epoch.grant))
        .time(|(_, _, until)| Some(*until))
}

fn item_identity<'a>(rows: &'a [NewItem<'a>]) -> Batch<'a, NewItem<'a>> {
    Batch::of(rows)
        .number(|((step, _), _)| Some(step.0))
        .number(|((_, index), _)| Some((*index).into()))
        .word(|(_, item)| item.order.key.as_ref().map(|key| key.as_str()))
        .word(|(_, item)| Some(item.life.state.as_str()))
        .time(|(_, item)| Some(item.accepted))
}

async fn add_open_items(client: &Client, rows: &[NewItem<'_>]) -> Result<(), Fault> {
    item_identity(rows)
        .time(|(_, item)| item.life.due)
        .time(|(_, item)| item.life.started)
        .number(|(_, item)| Some(item.life.tally.started.into()))
        .number(|(_, item)| Some(item.life.tally.failures.into()))
        .number(|(_, item)| Some(item.life.tally.losses.into()))
        .grant(|(_, item)| item.life.grant.as_ref())
        .word(|(_, item)| item.life.stop.map(words::of_stop))
        .word(|(_, item)| item.life.error.as_deref())
        .bytes(|(_, item)| Some(item.order.order.bytes()))
        .run(client, sql!("open_item_add"))
        .await
}

async fn add_ended_items(client: &Client, rows: &[NewItem<'_>]) -> Result<(), Fault> {
    item_identity(rows)
        .time(|(_, item)| item.life.started)
        .time(|(_, item)| item.life.ended)
        .number(|(_, item)| Some(item.life.tally.started.into()))
        .number(|(_, item)| Some(item.life.tally.failures.into()))
        .number(|(_, item)| Some(item.life.tally.losses.into()))
        .word(|(_, item)| item.life.stop.map(words::of_stop))
        .word(|(_, item)| item.life.error.as_deref())
        .bytes(|(_, item)| Some(item.order.order.bytes()))
        .bytes(|(_, item)| item.output.as_ref().map(Payload::bytes))
        .run(client, sql!("ended_item_add"))
        .await
}

fn changed_items<'a>(rows: &'a [Changed<'a>]) -> Batch<'a, Changed<'a>> {
    progress(Batch::of(rows).number(|(task, _)| Some(task.node.0)).number(|(task, _)| index(task)))
}

async fn change_items(client: &Client, rows: &[Changed<'_>]) -> Result<(), Fault> {
    hold(changed_items(rows)).run(client, sql!("open_item_change")).await
}

async fn end_items(client: &Client, rows: &[Changed<'_>]) -> Result<(), Fault> {
    changed_items(rows)
        .flag(|(_, change)| Some(change.stop.is_some()))
        .word(|(_, change)| change.stop.flatten().map(words::of_stop))
        .word(|(_, change)| change.error.as_ref()?.as_deref())
        .time(|(_, change)| change.end.as_ref().map(|end| end.at))
        .bytes(|(_, change)| change.end.as_ref()?.output.as_ref().map(Payload::bytes))
        .run(client, sql!("open_item_end"))
        .await
}

async fn end_range(client: &Client, range: &Range) -> Result<(), Fault> {
    let (step, from, to) = (signed(range.step.0), i64::from(range.from), i64::from(range.to));
    let (state, at) = (range.state.as_str(), Time(range.at));
    let columns: [(&(dyn ToSql + Sync), Type); 5] = [
        (&step, Type::INT8),
        (&from, Type::INT8),
        (&to, Type::INT8),
        (&state, Type::TEXT),
        (&at, Type::TIMESTAMPTZ),
    ];
    client.execute_typed(sql!("open_item_end_range"), &columns).await?;
    Ok(())
}
