//! Following what happens, live and again from a position.

use std::time::Duration;
use tidegate::{Ctx, Error, Happening, Position, Tidegate};

async fn flaky(ctx: Ctx, _: ()) -> Result<(), String> {
    if ctx.attempt() == 1 { Err("not yet".into()) } else { Ok(()) }
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let tide = Tidegate::open("memory:").await?;
    tide.action("flaky", flaky).retry(2, Duration::from_millis(1));

    let mut events = tide.events();
    let run = tide.submit("flaky", &()).await?;
    let mut working = tide.work(1).start().await?;
    let mut half_way = Position::START;
    loop {
        let event = events.next().await?;
        match &event.what {
            Happening::TaskGranted { worker, attempt, .. } => {
                println!("task.granted to {worker}, attempt {attempt}");
            }
            Happening::TaskRetrying { reason, .. } => {
                println!("task.retrying, because: {}", reason.as_deref().unwrap_or("unknown"));
                half_way = event.position;
            }
            Happening::RunFinished { state, .. } => {
                println!("run.finished, {state}");
                break;
            }
            other => println!("{}", other.kind()),
        }
    }

    // Positions stay valid, also after a restart, for as long as the store keeps what happened.
    println!("once more from half way:");
    let mut again = tide.events().after(half_way);
    loop {
        let event = again.next().await?;
        println!("{}", event.what.kind());
        if event.run == Some(run.id()) && matches!(event.what, Happening::RunFinished { .. }) {
            break;
        }
    }
    working.stop().await
}
