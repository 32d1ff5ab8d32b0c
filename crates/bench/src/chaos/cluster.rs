//! Three applications that share one PostgreSQL, are hit by one fault after the other, and are drained at last.

use super::application::{Orders, Place};
use super::ledger::Ledger;
use super::server::{Leader, Server};
use super::trail::{Hit, Start, Trail};
use super::workload::Workload;
use super::{exit_within, number, signal};
use anyhow::{Context, Result, bail};
use rustix::process::Signal;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};
use tidegate_core::ids::Name;
use tidegate_observer::{Fact, Mode, Record, Recorder, clock, judge, read};
use tidegate_sim::random::Random;

const NAMES: [&str; 3] = ["one", "two", "three"];
/// Between two looks at what the processes wrote down.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// How long a process may take to work, after it was started or whatever else happened.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long one may take to end when it is asked to, and the last ones to drain what is left.
const GOODBYE: Duration = Duration::from_secs(30);
const DRAIN: Duration = Duration::from_secs(120);

/// One of the processes, in whichever of its lives.
pub struct Member {
    pub child: Child,
    pub process: u32,
    /// Since when it is expected to work.
    pub since: u64,
    /// It was killed or asked to end, and has.
    is_gone: bool,
}

pub struct Cluster {
    pub server: Server,
    pub trail: Trail,
    pub random: Random,
    place: Place,
    recorder: Recorder,
    processes: u32,
    pub members: Vec<Member>,
}

impl Cluster {
    pub fn start(folder: &Path, seed: u64) -> Result<Cluster> {
        let server = Server::with_fresh_database()?;
        let records = folder.join("records");
        let recorder = Recorder::open(&records, Mode::AtOnce)?;
        let place = Place { address: server.url().to_owned(), records: records.clone(), name: None };
        let (trail, random) = (Trail::new(records), Random::new(seed));
        let mut cluster =
            Cluster { server, trail, random, place, recorder, processes: 0, members: Vec::new() };
        for at in 0..NAMES.len() {
            let member = cluster.begin(at, false)?;
            cluster.members.push(member);
        }
        Ok(cluster)
    }

    /// Another life of the process at this place. It has the same name, and so what its last life had is known to be lost.
    fn begin(&mut self, at: usize, drain: bool) -> Result<Member> {
        self.processes += 1;
        self.trail.look()?;
        let (kinds, at) = (Workload::Cluster.kinds(), at as u64);
        let submitters = at * kinds + 1..=(at + 1) * kinds;
        let orders = self.trail.orders(self.processes, submitters, kinds * NAMES.len() as u64);
        let name = Some(Name::new(NAMES[at as usize]));
        let child = Place { name, ..self.place.clone() }.start(&Orders { drain, ..orders })?;
        Ok(Member { child, process: self.processes, since: clock::now(), is_gone: false })
    }

    pub fn begin_again(&mut self, at: usize) -> Result<()> {
        self.members[at] = self.begin(at, false)?;
        Ok(())
    }

    /// Ends a process without warning, and tells what it had under way, and when that was.
    pub fn kill(&mut self, at: usize) -> Result<(Hit, u64)> {
        let process = self.members[at].process;
        self.members[at].child.kill()?;
        let status = self.members[at].child.wait()?;
        if status.code().is_some() {
            bail!("process {process} ended by itself: {status}");
        }
        self.trail.look()?;
        Ok((self.trail.hit(process), self.is_gone(at)))
    }

    /// Asks a process to end, and tells what it had under way then, and when it was gone.
    pub fn end(&mut self, at: usize) -> Result<(Hit, u64)> {
        let process = self.members[at].process;
        signal(&self.members[at].child, Signal::TERM)?;
        self.trail.look()?;
        let hit = self.trail.hit(process);
        exit_within(&mut self.members[at].child, GOODBYE)
            .with_context(|| format!("process {process}, asked to end"))?;
        Ok((hit, self.is_gone(at)))
    }

    fn is_gone(&mut self, at: usize) -> u64 {
        let now = clock::now();
        self.members[at].is_gone = true;
        self.write_down(Fact::Died, self.members[at].process, now);
        now
    }

    /// Lets a process go on that was stopped as a whole; when that was.
    pub fn go_on(&mut self, at: usize) -> Result<u64> {
        let resumed = clock::now();
        self.write_down(Fact::Resumed, self.members[at].process, resumed);
        self.members[at].since = resumed;
        signal(&self.members[at].child, Signal::CONT)?;
        Ok(resumed)
    }

    /// One of the others.
    pub fn other_than(&mut self, at: usize) -> usize {
        (at + 1 + self.random.index(NAMES.len() - 1)) % NAMES.len()
    }

    fn write_down(&mut self, fact: Fact, process: u32, at: u64) {
        self.recorder.append(&Record { process, ..Record::new(fact, 0, at) });
    }

    /// Looks again and again until it is so, and gives what was found then. Nobody may end meanwhile.
    pub fn until<T>(
        &mut self,
        what: &str,
        patience: Duration,
        mut is_so: impl FnMut(&mut Cluster, &[Start]) -> Result<Option<T>>,
    ) -> Result<T> {
        let begin = Instant::now();
        loop {
            let starts = self.trail.look()?;
            if let Some(found) = is_so(self, &starts)? {
                return Ok(found);
            }
            for member in self.members.iter_mut().filter(|member| !member.is_gone) {
                if let Some(status) = member.child.try_wait()? {
                    bail!("process {} ended by itself: {status}", member.process);
                }
            }
            if begin.elapsed() > patience {
                bail!("{what}: not within {patience:?}");
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    /// Until every process works, and one of them leads: that one, and its place.
    pub fn settle(&mut self) -> Result<(usize, Leader)> {
        self.until("everybody works", PATIENCE, |cluster, _| {
            let works = |member: &Member| {
                cluster.trail.latest_start(member.process).is_some_and(|start| start.at > member.since)
            };
            if !cluster.members.iter().all(works) {
                return Ok(None);
            }
            let leader = cluster.server.leader()?;
            Ok(leader.and_then(|leader| {
                // Each start adds something of its own to the name.
                let (process, _) = leader.name.rsplit_once('-')?;
                let at = NAMES.iter().position(|name| *name == process)?;
                Some((at, leader))
            }))
        })
    }

    /// Everybody is killed; what is left is drained, and judged. Jobs may have been handed back so many times.
    pub fn drain(mut self, mut ledger: Ledger, hand_backs: u32) -> Result<Ledger> {
        for at in 0..NAMES.len() {
            self.kill(at)?;
        }
        for at in 0..NAMES.len() {
            self.members[at] = self.begin(at, true)?;
        }
        for member in &mut self.members {
            exit_within(&mut member.child, DRAIN).context("one of the last, which drain what is left")?;
        }
        for past in self.server.history()? {
            let Some(fact) = past.fact() else { continue };
            let job = past.id.map(number).context("a job without an id")?;
            self.recorder.append(&Record { order: past.order, ..Record::new(fact, job, clock::now()) });
        }
        let records = read(&self.place.records)?;
        let case = Workload::Cluster.case(hand_backs);
        let verdict = judge(&case, &records);
        ledger.count("executions whose lease was renewed", verdict.renewed);
        ledger.count_rare("executions that outlasted their lease", verdict.lapsed);
        ledger.judged(&case, &records, &verdict);
        Ok(ledger)
    }
}

impl Drop for Cluster {
    /// Nobody is left behind, whatever went wrong.
    fn drop(&mut self) {
        for member in &mut self.members {
            // It may have ended already.
            let _ = member.child.kill();
            let _ = member.child.wait();
        }
    }
}
