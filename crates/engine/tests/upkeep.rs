//! History goes by itself where an engine leads, by its policy and in virtual time.

mod support;

use support::engine;
use tidegate_core::ids::{Name, NodeId, RunId};
use tidegate_core::protocol::{Body, JobBody, Life, NodeRow, Write};
use tidegate_core::state::State;
use tidegate_core::time::{Moment, Span};
use tidegate_engine::Settings;
use tidegate_store::{Commit, Entry, MemoryStore, Reads, Retention, Sought, Store};

/// All but the first ended at this moment.
const END: Moment = Moment(0);
/// It ended so long before that it goes under every policy here: when it has gone, the others were looked at.
const OLDEST: (u64, State) = (1, State::Succeeded);
const OTHERS: [(u64, State); 4] =
    [(2, State::Succeeded), (3, State::Failed), (4, State::Cancelled), (5, State::TimedOut)];

fn ended_job((number, state): (u64, State), at: Moment) -> Write {
    let body = JobBody {
        id: RunId(number.into()),
        action: Name::new("mail"),
        key: None,
        tags: Vec::new(),
        start_by: None,
        idempotency: None,
    };
    Write::NodeAdded(Box::new(NodeRow {
        node: NodeId(number),
        parent: None,
        root: number,
        priority: 0,
        accepted: at,
        body: Body::Job(body),
        payload: None,
        life: Life { ended: Some(at), ..Life::new(state) },
    }))
}

fn history() -> MemoryStore {
    let store = MemoryStore::new();
    let mut owner = store.handle();
    let term = owner.lead(&Name::new("before"), None, Span::seconds(4)).unwrap().unwrap().term;
    let others = OTHERS.iter().map(|job| ended_job(*job, END));
    let writes = [ended_job(OLDEST, END - Span::days(999))].into_iter().chain(others).collect();
    let entry =
        Entry { sequence: 1, term, batch: 1, now: END, next: 9, letters: vec![], digest: None, writes };
    assert_eq!(owner.commit(&entry).unwrap(), Commit::Done);
    owner.resign(term).unwrap();
    store
}

/// Which of the others an engine has left, that leads so long after their end.
async fn left(retention: Retention, after: Span) -> Vec<u64> {
    let mut store = history();
    store.set_clock(END + after);
    let engine = engine(Settings { retention, ..Settings::new("engine") }, &store);
    // It is asked for over and over, because nobody is told when it is gone.
    while !matches!(engine.result(RunId(OLDEST.0.into())).await, Ok(None)) {}
    let sought: Vec<Sought> = OTHERS.iter().map(|(number, _)| Sought::Id(RunId((*number).into()))).collect();
    let found = store.find(&sought).unwrap();
    engine.shut_down().await;
    found.into_iter().flatten().map(|found| found.node.0).collect()
}

#[tokio::test]
async fn what_succeeded_is_kept_for_30_days_and_everything_else_for_90() {
    let settings = Settings::new("engine");
    let hour = Span::hours(1);
    for (after, expected) in [
        (Span::hours(30 * 24 - 1), &[2, 3, 4, 5][..]),
        (Span::days(30) + hour, &[3, 4, 5]),
        (Span::hours(90 * 24 - 1), &[3, 4, 5]),
        (Span::days(90) + hour, &[]),
    ] {
        assert_eq!(left(settings.retention, after).await, expected, "after {after}");
    }
}

#[tokio::test]
async fn each_of_both_can_be_kept_shorter_or_for_ever() {
    let years = Span::days(500);
    let failures = Retention { succeeded: Span::hours(1), failed: Span::MAX };
    assert_eq!(left(failures, years).await, [3, 4, 5]);
    // The oldest, which succeeded, would stay for ever too: so long it is kept.
    let successes = Retention { succeeded: Span::days(600), failed: Span::hours(1) };
    assert_eq!(left(successes, years).await, [2]);
    assert_eq!(
        left(Retention::of_all(Span::ZERO), Span::seconds(30)).await,
        [2, 3, 4, 5],
        "a minute at least"
    );
}
