//! Not an example: a process of a cluster, which the tests stop, kill and listen to.
//!
//! `member URL NAME` opens the database, works, and submits jobs until its input ends; then it waits for them and ends.
//! One that is called `helper` only works.
//! It says what happens, one line each:
//! - `working`: it has joined
//! - `began JOB`, `ended JOB`, `dropped JOB`: an execution here
//! - `done JOB`: a job that it submitted has ended, as it was told
//! - `submitted COUNT`: all of its jobs have ended

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tidegate::{Ctx, Error, Run, Tidegate};

/// The name of the process that also submits a job which never ends in it.
const FIRST: &str = "first";
/// The name of the process that submits nothing.
const HELPER: &str = "helper";
/// Jobs that it waits for at once.
const AT_ONCE: u64 = 4;

#[tokio::main]
async fn main() -> Result<(), Error> {
    let mut words = std::env::args().skip(1);
    let (Some(url), Some(name)) = (words.next(), words.next()) else { return Err(Error::Closed) };
    let tide = Tidegate::builder(&url).name(name.as_str()).keep_digests().open().await?;
    tide.flow("pools: { brief: { slots: 1000, lease: 1s } }")?;
    tide.action("short", short).concurrency(3).pool("brief", 1).max_losses(30);
    let here = name.clone();
    tide.action("stay", move |_, wanted: String| stay(here.clone(), wanted)).pool("brief", 1).max_losses(30);
    tide.action("plain", short);
    let mut working = tide.work(4).start().await?;
    println!("working");

    let is_over = Arc::new(AtomicBool::new(false));
    let told = is_over.clone();
    let input = tokio::task::spawn_blocking(move || {
        // Whatever comes, and however it ends, it is the end that counts.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        told.store(true, Ordering::SeqCst);
    });
    let next = Arc::new(AtomicU64::new(0));
    // Somebody else has to be there who can end it.
    let stays = (name == FIRST)
        .then(|| tokio::spawn(finish(tide.clone(), "stay", format!("{name}-stay"), name.clone())));
    let at_once = if name == HELPER { 0 } else { AT_ONCE };
    let submitters: Vec<_> = (0..at_once)
        .map(|_| {
            let (tide, name, next, is_over) = (tide.clone(), name.clone(), next.clone(), is_over.clone());
            tokio::spawn(async move {
                while !is_over.load(Ordering::SeqCst) {
                    let job = format!("{name}-{}", next.fetch_add(1, Ordering::SeqCst));
                    finish(tide.clone(), "short", job.clone(), job).await?;
                }
                Ok(())
            })
        })
        .collect();
    for ended in submitters.into_iter().chain(stays) {
        ended.await.map_err(|_| Error::Closed)??;
    }
    input.await.map_err(|_| Error::Closed)?;
    println!("submitted {}", next.load(Ordering::SeqCst) + u64::from(name == FIRST));
    working.stop().await?;
    tide.close().await;
    Ok(())
}

/// Submits a job under a key, which makes it safe to ask again, and waits for its end.
async fn finish(tide: Tidegate, action: &str, key: String, input: String) -> Result<(), Error> {
    let run: Run = loop {
        match tide.submit(action, &input).key(key.as_str()).await {
            Err(error) if error.may_pass() => tokio::time::sleep(Duration::from_millis(20)).await,
            submitted => break submitted?,
        }
    };
    loop {
        match run.result::<()>().await {
            Err(error) if error.may_pass() => tokio::time::sleep(Duration::from_millis(20)).await,
            ended => {
                println!("done {key}");
                return ended;
            }
        }
    }
}

async fn short(_: Ctx, job: String) -> Result<(), String> {
    println!("began {job}");
    tokio::time::sleep(Duration::from_millis(5)).await;
    println!("ended {job}");
    Ok(())
}

/// Never ends in the process that asked for it; elsewhere it does at once.
async fn stay(here: String, wanted: String) -> Result<(), String> {
    println!("began {wanted}-stay");
    if here == wanted {
        let _dropped = Dropped(format!("{wanted}-stay"));
        std::future::pending::<()>().await;
    }
    println!("ended {wanted}-stay");
    Ok(())
}

struct Dropped(String);

impl Drop for Dropped {
    fn drop(&mut self) {
        println!("dropped {}", self.0);
    }
}
