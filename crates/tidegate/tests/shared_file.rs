//! Programs that share a SQLite file: one leads, and another takes over.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tidegate::{Error, StoreError, Tidegate};

/// How many are inside, and how many ever were at once.
#[derive(Clone, Default)]
struct Room {
    inside: Arc<AtomicU32>,
    most: Arc<AtomicU32>,
}

async fn share(address: &str, room: &Room) -> Tidegate {
    let tide = Tidegate::builder(address).share_file().open().await.expect("it is shared");
    let room = room.clone();
    let enter = move |_, number: u32| {
        let room = room.clone();
        async move {
            let inside = room.inside.fetch_add(1, Ordering::SeqCst) + 1;
            room.most.fetch_max(inside, Ordering::SeqCst);
            tokio::task::yield_now().await;
            room.inside.fetch_sub(1, Ordering::SeqCst);
            Ok::<_, String>(number)
        }
    };
    tide.action("enter", enter).concurrency(1);
    tide
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_holds_for_all_and_who_follows_takes_over() {
    let folder = tempfile::tempdir().unwrap();
    let address = format!("sqlite:{}", folder.path().join("app.db").display());
    let room = Room::default();
    let first = share(&address, &room).await;
    let mut first_works = first.work(4).start().await.unwrap();
    let second = share(&address, &room).await;
    let mut second_works = second.work(4).start().await.unwrap();
    let alone = Tidegate::open(&address).await.err();
    assert!(matches!(alone, Some(Error::Store(StoreError::InUse(_)))), "{alone:?}");

    let mut runs = Vec::new();
    for number in 0..30_u32 {
        let tide = if number % 2 == 0 { &first } else { &second };
        runs.push((number, tide.submit("enter", &number).await.unwrap()));
    }
    for (number, run) in &runs {
        assert_eq!(run.result::<u32>().await.unwrap(), *number);
    }
    assert_eq!(room.most.load(Ordering::SeqCst), 1);

    first_works.stop().await.unwrap();
    first.close().await;
    let run = second.submit("enter", &99_u32).await.unwrap();
    assert_eq!(run.result::<u32>().await.unwrap(), 99, "the second leads now");
    let before = second.run(runs[0].1.id()).await.unwrap();
    assert_eq!(before.result::<u32>().await.unwrap(), 0, "and has everything");
    second_works.stop().await.unwrap();
    second.close().await;
}

#[tokio::test]
async fn what_is_sent_to_a_queue_waits_for_its_workers() {
    let room = Room::default();
    let tide = Tidegate::open("memory:").await.unwrap();
    let other = room.clone();
    tide.action("enter", move |_, number: u32| {
        other.inside.fetch_add(1, Ordering::SeqCst);
        async move { Ok::<_, String>(number) }
    });
    let mut everybody = tide.work(4).start().await.unwrap();
    let sent = tide.submit("enter", &1_u32).queue("mine").await.unwrap();
    let plain = tide.submit("enter", &2_u32).await.unwrap();
    assert_eq!(plain.result::<u32>().await.unwrap(), 2);
    let why = sent.explain().await.unwrap().expect("it waits").to_string();
    assert!(why.contains("no connected worker of queue mine can run it"), "{why}");
    let mut mine = tide.work(1).queues(["mine"]).start().await.unwrap();
    assert_eq!(sent.result::<u32>().await.unwrap(), 1);
    assert_eq!(room.inside.load(Ordering::SeqCst), 2);
    mine.stop().await.unwrap();
    everybody.stop().await.unwrap();
}
