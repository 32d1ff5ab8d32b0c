//! What listeners are told: what happened, and no more of what was given and returned than is worth keeping for them.
//!
//! Entries wait for listeners that are slow. Whoever wants a payload reads it from the store.

use std::sync::Arc;
use tidegate_core::protocol::{Payload, Write};
use tidegate_store::Entry;

/// Payloads of an entry that are told along.
const FEW_BYTES: usize = 256 * 1024;

pub(super) fn for_listeners(entry: Arc<Entry>) -> Arc<Entry> {
    if entry.writes.iter().map(bytes).sum::<usize>() <= FEW_BYTES {
        return entry;
    }
    Arc::new(Entry { writes: entry.writes.iter().map(without_payloads).collect(), ..head(&entry) })
}

fn bytes(write: &Write) -> usize {
    let length = |payload: &Payload| payload.bytes().len();
    match write {
        Write::NodeAdded(row) => row.payload.as_ref().map_or(0, length),
        Write::ItemsAdded { items, .. } => items.iter().map(|item| length(&item.order)).sum(),
        Write::Ended { output, .. } => output.as_ref().map_or(0, length),
        _ => 0,
    }
}

fn without_payloads(write: &Write) -> Write {
    let mut write = write.clone();
    match &mut write {
        Write::NodeAdded(row) => row.payload = None,
        Write::ItemsAdded { items, .. } => items.iter_mut().for_each(|item| item.order = Payload::null()),
        Write::Ended { output, .. } => *output = None,
        _ => {}
    }
    write
}

/// The entry without its writes.
fn head(entry: &Entry) -> Entry {
    let Entry { sequence, term, batch, now, next, digest, .. } = *entry;
    Entry { sequence, term, batch, now, next, letters: entry.letters.clone(), digest, writes: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::ids::{NodeId, TaskId};
    use tidegate_core::state::State;
    use tidegate_core::time::Moment;

    fn entry(bytes: usize) -> Arc<Entry> {
        let write = Write::Ended {
            task: TaskId::node(NodeId(1)),
            state: State::Succeeded,
            output: Some(Payload::new("x".repeat(bytes))),
            error: None,
            at: Moment(1),
        };
        let (sequence, term, batch, now, next) = (7, 1, 3, Moment(1), 2);
        Arc::new(Entry {
            sequence,
            term,
            batch,
            now,
            next,
            letters: vec![4],
            digest: None,
            writes: vec![write],
        })
    }

    #[test]
    fn only_large_payloads_are_left_out() {
        let small = entry(FEW_BYTES);
        assert!(Arc::ptr_eq(&small, &for_listeners(small.clone())));
        let large = for_listeners(entry(FEW_BYTES + 1));
        assert!(matches!(&large.writes[..], [Write::Ended { output: None, state: State::Succeeded, .. }]));
        assert_eq!((large.sequence, &large.letters), (7, &vec![4]));
    }
}
