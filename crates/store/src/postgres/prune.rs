//! History that nobody wants any more goes in slices, oldest end first.

use super::columns::{Time, signed, unsigned};
use super::fault::Fault;
use super::projector::{entry, tail};
use super::session::Session;
use super::{Columns, sql};
use crate::contract::{KEYS_STAY, Pruned, StoreError};
use crate::retention::Before;
use std::collections::BTreeMap;
use std::time::Duration;
use tidegate_core::protocol::Write;
use tokio_postgres::Client;
use tokio_postgres::types::Type;

/// How long a slice may take: no commit is made meanwhile, nor is the lead renewed.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long it may take to count, which keeps nobody waiting.
const COUNT_PATIENCE: Duration = Duration::from_secs(60);
/// Roots that are looked at together: few round trips, and little is looked at in vain if one of them is large.
const AT_ONCE: u64 = 200;

pub fn prune(session: &mut Session, before: Before, most: u32) -> Result<Pruned, StoreError> {
    let most = u64::from(most);
    session.call(PATIENCE, async |client| {
        client.batch_execute("begin").await?;
        client.batch_execute(sql!("idle_most")).await?;
        client.batch_execute(sql!("lock_most")).await?;
        client.query_typed(sql!("project_settings"), &[]).await?;
        let reused = reused_by_the_tail(client).await?;
        let mut slice = Slice { client, left: most, gone: 0 };
        for (succeeded, before) in before.outcomes() {
            let before = Time(before);
            while slice.left > 0 {
                let roots = oldest(client, succeeded, before, &reused, slice.left.min(AT_ONCE)).await?;
                if roots.is_empty() {
                    break;
                }
                slice.remove(&roots).await?;
            }
        }
        client.batch_execute("commit").await?;
        Ok(Pruned { roots: slice.gone, rows: most - slice.left })
    })
}

/// How many roots there are to be deleted.
pub fn count(session: &mut Session, before: Before) -> Result<u64, StoreError> {
    let keys_stay = signed(KEYS_STAY.0);
    session.call(COUNT_PATIENCE, async |client| {
        let mut count = 0;
        for (succeeded, before) in before.outcomes() {
            let columns: Columns =
                &[(&succeeded, Type::BOOL), (&Time(before), Type::TIMESTAMPTZ), (&keys_stay, Type::INT8)];
            let row = client.query_typed_one(sql!("prune_count"), columns).await?;
            count += unsigned(row.try_get(0)?);
        }
        Ok(count)
    })
}

/// Runs that are reused by what is committed and not in the tables yet. Read before the tables are looked at: what comes
/// into them in between is found there.
async fn reused_by_the_tail(client: &Client) -> Result<Vec<i64>, Fault> {
    let row = client.query_typed_one(sql!("position_get"), &[]).await?;
    let (mut position, mut reused) = (unsigned(row.try_get(0)?), Vec::new());
    loop {
        let rows = tail(client, position).await?;
        if rows.is_empty() {
            return Ok(reused);
        }
        for row in &rows {
            position += 1;
            let added = entry(position, row)?.writes.into_iter().filter_map(|write| match write {
                Write::NodeAdded(row) => row.body.reuses(),
                _ => None,
            });
            reused.extend(added.map(|run| signed(run.0)));
        }
    }
}

/// Roots that may go, and whether each is a job.
async fn oldest(
    client: &Client,
    succeeded: bool,
    before: Time,
    reused: &[i64],
    most: u64,
) -> Result<Vec<(i64, bool)>, Fault> {
    let (keys_stay, limit) = (signed(KEYS_STAY.0), signed(most));
    let columns: Columns = &[
        (&succeeded, Type::BOOL),
        (&before, Type::TIMESTAMPTZ),
        (&keys_stay, Type::INT8),
        (&limit, Type::INT8),
        (&reused, Type::INT8_ARRAY),
    ];
    let rows = client.query_typed(sql!("prune_roots"), columns).await?;
    rows.into_iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
}

/// A node below a root, and whether it has items.
type Part = (i64, bool);

/// What is deleted with one commit.
struct Slice<'a> {
    client: &'a Client,
    /// Rows that may still go.
    left: u64,
    /// Roots of which nothing is left.
    gone: u64,
}

impl Slice<'_> {
    /// Root by root: its items, what is below it, itself. If anything is left to do, all of them went.
    async fn remove(&mut self, roots: &[(i64, bool)]) -> Result<(), Fault> {
        let mut below = self.below(roots).await?;
        let mut tasks = Vec::new();
        for (root, _) in roots {
            let parts = below.remove(root).unwrap_or_default();
            let loops: Vec<i64> =
                parts.iter().filter(|(_, has_items)| *has_items).map(|part| part.0).collect();
            if !loops.is_empty() {
                self.remove_items(&loops).await?;
            }
            let nodes = parts.into_iter().map(|(node, _)| node).chain([*root]);
            let room = usize::try_from(self.left).unwrap_or(usize::MAX);
            let going = tasks.len();
            tasks.extend(nodes.take(room));
            self.left -= (tasks.len() - going) as u64;
            self.gone += u64::from(tasks[going..].last() == Some(root));
            if self.left == 0 {
                break;
            }
        }
        let columns: Columns = &[(&tasks, Type::INT8_ARRAY)];
        self.client.execute_typed(sql!("prune_tasks"), columns).await?;
        Ok(())
    }

    async fn below(&self, roots: &[(i64, bool)]) -> Result<BTreeMap<i64, Vec<Part>>, Fault> {
        let runs: Vec<i64> = roots.iter().filter(|(_, is_job)| !is_job).map(|(root, _)| *root).collect();
        let mut below = BTreeMap::<i64, Vec<Part>>::new();
        if runs.is_empty() {
            return Ok(below);
        }
        let columns: Columns = &[(&runs, Type::INT8_ARRAY)];
        for row in self.client.query_typed(sql!("prune_below"), columns).await? {
            below.entry(row.try_get(0)?).or_default().push((row.try_get(1)?, row.try_get(2)?));
        }
        Ok(below)
    }

    async fn remove_items(&mut self, steps: &[i64]) -> Result<(), Fault> {
        for sql in [sql!("prune_open_items"), sql!("prune_ended_items")] {
            let most = signed(self.left);
            let columns: Columns = &[(&steps, Type::INT8_ARRAY), (&most, Type::INT8)];
            self.left -= self.client.execute_typed(sql, columns).await?;
        }
        Ok(())
    }
}
