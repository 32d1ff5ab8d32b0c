//! A program that embeds Tidegate, submits and works, and has no idea when it ends. Asked to (SIGTERM), it ends cleanly.

use super::submitter::Submitter;
use super::workload::Workload;
use crate::jobs::Jobs;
use crate::subject::{Staff, Subject};
use anyhow::{Context, Result};
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use tidegate_core::ids::Name;
use tidegate_observer::{Mode, Recorder};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;

/// The first argument by which the program of this crate becomes an application.
pub const APPLICATION: &str = "application";

/// Where an application works, the same at every start.
#[derive(Clone, Debug)]
pub struct Place {
    /// Of the store.
    pub address: String,
    /// Where it and its jobs write down what they did.
    pub records: PathBuf,
    /// Of the process, where several share the store.
    pub name: Option<Name>,
}

/// What one start of an application has to know.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Orders {
    /// Of this start; no other has it.
    pub process: u32,
    /// The number of the first job that each of its submitters has not been told about.
    pub next: Vec<u64>,
    /// The distance between two jobs of a submitter.
    pub stride: u64,
    /// Jobs that were asked for and have not been executed.
    pub backlog: u64,
    /// Ask for nothing new, and end when everything has.
    pub drain: bool,
}

impl Place {
    /// Several processes share PostgreSQL, and nothing else.
    fn workload(&self) -> Workload {
        if self.name.is_some() { Workload::Cluster } else { Workload::Embedded }
    }

    pub fn start(&self, orders: &Orders) -> Result<Child> {
        let Orders { process, next, stride, backlog, drain } = orders;
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(APPLICATION).arg(&self.records).arg(&self.address);
        command.arg(self.name.as_ref().map_or("", Name::as_str));
        command.args([process.to_string(), stride.to_string(), backlog.to_string(), drain.to_string()]);
        Ok(command.args(next.iter().map(ToString::to_string)).spawn()?)
    }
}

/// The whole life of an application. Its end is the exception.
pub fn run(mut words: impl Iterator<Item = String>) -> Result<()> {
    let mut word = || words.next().context("an order is missing");
    let (records, address, name) = (PathBuf::from(word()?), word()?, word()?);
    let name = (!name.is_empty()).then(|| Name::from(name));
    let place = Place { address, records, name };
    let (process, stride, backlog, drain) =
        (word()?.parse()?, word()?.parse()?, word()?.parse()?, word()?.parse()?);
    let next = words.map(|word| Ok(word.parse()?)).collect::<Result<_>>()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(work(&place, Orders { process, next, stride, backlog, drain }))
}

async fn work(place: &Place, orders: Orders) -> Result<()> {
    let mut asked_to_end = signal(SignalKind::terminate())?;
    let recorder = Recorder::open(&place.records, Mode::AtOnce)?;
    let jobs = Jobs::new(Some(recorder), orders.process);
    let workload = place.workload();
    let subject = Arc::new(Subject::open(&place.address, workload.setting(place.name.clone())).await?);
    let functions = workload.functions(&jobs);
    subject.work(&Staff { functions, workers: 2, slots: workload.slots() }).await;
    let submitter = Submitter {
        subject: subject.clone(),
        jobs,
        workload,
        asked: Arc::new(AtomicU64::new(orders.backlog)),
        stride: orders.stride,
        drain: orders.drain,
    };
    let mut submitters = JoinSet::new();
    for next in orders.next {
        submitters.spawn(submitter.clone().submit_from(next));
    }
    drop(submitter);
    let life = async {
        while let Some(ended) = submitters.join_next().await {
            ended??;
        }
        subject.history_is_complete().await
    };
    tokio::select! {
        ended = life => ended?,
        _ = asked_to_end.recv() => {}
    }
    submitters.shutdown().await;
    subject.shut_down().await
}
