//! Failures are tried again, with a pause in which nothing is held; the last one is the result.

use std::time::Duration;
use tidegate::{Backoff, Ctx, Error, Tidegate};

/// Fails twice. What it does outside is safe to repeat, because every attempt names the same key.
async fn charge(ctx: Ctx, cents: u32) -> Result<String, String> {
    println!("attempt {}: charge {cents} cents", ctx.attempt());
    match ctx.attempt() {
        1 => Err("the bank does not answer".into()),
        2 => panic!("a bug"),
        _ => Ok(format!("charged {cents} cents once, whoever asked again")),
    }
}

async fn refuse(_: Ctx, _: u32) -> Result<(), String> {
    Err("the card is not valid".into())
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let tide = Tidegate::open("memory:").await?;
    let pause = Duration::from_millis(10);
    tide.action("charge", charge).retry(5, pause).backoff(Backoff::Exponential, Duration::from_secs(60));
    tide.action("refuse", refuse).retry(2, pause);
    let mut working = tide.work(4).start().await?;

    let charged = tide.submit("charge", &1250).await?;
    println!("{}", charged.result::<String>().await?);

    match tide.submit("refuse", &1).await?.result::<()>().await {
        Err(Error::Failed { error, .. }) => println!("failed for good: {error}"),
        other => println!("{other:?}"),
    }
    working.stop().await
}
