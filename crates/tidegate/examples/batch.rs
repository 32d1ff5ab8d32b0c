//! Many at once: few commits for a thousand submissions, and one answer for each.

use tidegate::{Ctx, Error, Run, Tidegate};

async fn square(_: Ctx, number: u64) -> Result<u64, String> {
    Ok(number * number)
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let tide = Tidegate::open("memory:").await?;
    tide.action("square", square).concurrency(50);
    let mut working = tide.work(200).start().await?;

    // Each is accepted or refused by itself; collecting stops at the first refusal.
    let submits = (1..=1_000_u64).map(|number| tide.submit("square", &number));
    let runs: Vec<Run> = tide.submit_many(submits).await.into_iter().collect::<Result<_, _>>()?;

    let mut sum = 0;
    for run in &runs {
        sum += run.result::<u64>().await?;
    }
    println!("the sum of {} squares is {sum}", runs.len());

    // The same key with the same content is accepted once.
    let first = tide.submit("square", &7).key("seven").await?;
    let again = tide.submit("square", &7).key("seven").await?;
    println!("submitted twice, accepted once: {}", first.id() == again.id());
    working.stop().await
}
