//! A durable job in a few lines: define an action, submit an input, wait for the result.

use serde::{Deserialize, Serialize};
use tidegate::{Ctx, Error, Tidegate};

#[derive(Serialize, Deserialize)]
struct Greeting {
    name: String,
}

async fn greet(ctx: Ctx, greeting: Greeting) -> Result<String, String> {
    Ok(format!("Hello, {} (attempt {})", greeting.name, ctx.attempt()))
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    // `sqlite:greetings.db` would keep everything in a file; this is gone with the process.
    let tide = Tidegate::open("memory:").await?;
    tide.action("greet", greet);

    // It is durable once this returns, whether or not anybody works.
    let run = tide.submit("greet", &Greeting { name: "Ada".into() }).await?;

    // Eight slots of this process. Dropped or stopped, they hand back what they have.
    let mut working = tide.work(8).start().await?;
    println!("{}", run.result::<String>().await?);

    working.stop().await?;
    tide.close().await;
    Ok(())
}
