//! Limits that hold: a pool that actions share, and a bound on the runs of each tenant.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tidegate::{Ctx, Error, Tidegate};

/// How many run now, and how many did at most.
static NOW: AtomicU32 = AtomicU32::new(0);
static MOST: AtomicU32 = AtomicU32::new(0);

async fn render(_: Ctx, _frame: serde_json::Value) -> Result<(), String> {
    MOST.fetch_max(NOW.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_millis(5)).await;
    NOW.fetch_sub(1, Ordering::SeqCst);
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let tide = Tidegate::open("memory:").await?;

    // Capacity is declared apart from demand: four units, of which every rendering takes two.
    tide.pool("gpu", 4);
    tide.action("render", render).concurrency(10).pool("gpu", 2);

    // Tags bound runs of flows: one at a time for each tenant.
    tide.flow(
        "flow: film
steps:
  frames: { with_items: '{{ range(10) | list }}', action: render, inputs: { frame: '{{ item }}' } }
---
limits: { tags: [{ tag: tenant, per_value: 1 }] }
",
    )?;
    let first = tide.submit("film", &()).tag("tenant", "acme").await?;
    let second = tide.submit("film", &()).tag("tenant", "acme").await?;
    if let Some(why) = second.explain().await? {
        let blocker = &why.blockers[0].limit;
        println!("the second film waits for {blocker}");
    }

    let mut working = tide.work(100).start().await?;
    first.wait().await?;
    second.wait().await?;
    println!("at most {} of 20 frames were rendered at once", MOST.load(Ordering::SeqCst));

    // An operator's word, while everything runs. It wins over what was declared, until it is taken back.
    tide.limits().set("pool:gpu", 2).by("ada").lasting(Duration::from_secs(3600)).await?;
    MOST.store(0, Ordering::SeqCst);
    tide.submit("film", &()).await?.wait().await?;
    println!("then at most {}", MOST.load(Ordering::SeqCst));

    working.stop().await
}
