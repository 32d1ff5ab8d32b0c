//! What a full disk does to the owner's handle, with a limit of the connection's own in the disk's place; and that two
//! connections read what one does.

use super::*;
use tidegate_core::ids::RunId;
use tidegate_core::protocol::{Body, JobBody, Life, NodeRow, Write};
use tidegate_core::state::State;

/// An entry that adds a job with a payload of this size.
fn entry(sequence: u64, term: u32, size: usize) -> Entry {
    let writes = vec![Write::NodeAdded(Box::new(job(sequence, size)))];
    let (batch, next, letters) = (sequence.into(), sequence + 1, Vec::new());
    Entry { sequence, term, batch, now: Moment(0), next, letters, digest: None, writes }
}

fn job(node: u64, size: usize) -> NodeRow {
    let body = JobBody {
        id: RunId(node.into()),
        action: Name::new("mail.send"),
        key: None,
        tags: Vec::new(),
        start_by: None,
        idempotency: None,
    };
    NodeRow {
        node: NodeId(node),
        parent: None,
        root: node,
        priority: 0,
        accepted: Moment(0),
        body: Body::Job(body),
        payload: Some(Payload::new(format!("\"{}\"", "x".repeat(size)))),
        life: Life::new(State::Waiting),
    }
}

#[test]
fn the_owner_reads_with_two_what_a_reader_reads_with_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let mut store = SqliteStore::open(&path).unwrap();
    let term = store.lead(&Name::new("server"), None, Span::ZERO).unwrap().unwrap().term;
    let numbers = (1..).step_by(3).take(1_500);
    let writes = numbers.clone().map(|node| Write::NodeAdded(Box::new(job(node, 1)))).collect();
    let many = Entry { next: 9_999, writes, ..entry(1, term, 0) };
    assert_eq!(store.commit(&many), Ok(Commit::Done));
    let loaded = store.load().unwrap();
    assert!(loaded.snapshot.nodes.iter().map(|row| row.node.0).eq(numbers), "each once, in order");
    assert_eq!(SqliteStore::open_reader(&path).unwrap().load().unwrap(), loaded);
}

#[test]
fn a_full_disk_takes_nothing_and_everything_again_once_there_is_room() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let mut store = SqliteStore::open(&path).unwrap();
    let term = store.lead(&Name::new("server"), None, Span::ZERO).unwrap().unwrap().term;
    assert_eq!(store.commit(&entry(1, term, 10)), Ok(Commit::Done));
    let before = store.load().unwrap();
    // SQLite takes a limit below what is there for exactly what is there.
    let connection = store.connection.as_ref().unwrap();
    connection.pragma_update_and_check(None, "max_page_count", 1, |_| Ok(())).unwrap();

    let large = entry(2, term, 1_000_000);
    let full = StoreError::Unusable("disk full".to_owned());
    assert_eq!(store.commit(&large), Err(full.clone()));
    assert_eq!(store.load(), Err(full), "nothing is to be trusted before it is opened anew");
    assert!(
        matches!(SqliteStore::open(&path), Err(StoreError::InUse(_))),
        "it is still this process's alone"
    );

    store.reopen().unwrap();
    assert_eq!(store.load().unwrap(), before, "nothing of what did not fit");
    assert_eq!(store.commit(&large), Ok(Commit::Done));
    assert_eq!(store.load().unwrap().sequence, 2);
}
