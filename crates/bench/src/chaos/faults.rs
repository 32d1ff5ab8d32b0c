//! What is done to a cluster, each a number of times and in an order that the seed decides.

use super::cluster::Cluster;
use super::ledger::{Ledger, PATIENCE};
use super::server::Leader;
use super::signal;
use super::trail::{Hit, Start};
use anyhow::{Result, ensure};
use rustix::process::Signal;
use std::path::Path;
use std::time::Duration;
use tidegate_observer::clock;
use tidegate_sim::random::Random;

/// From the end of whoever led to the first start that another one granted.
const TAKE_OVER: Duration = Duration::from_secs(5);
/// From the end of a fault of the store to the first start.
const RECOVERY: Duration = Duration::from_secs(10);
/// How long a process that goes on may take to work again.
const RETURN: Duration = Duration::from_secs(60);
/// A process that is still for so many milliseconds is given up by the leader, which closes the slots of its workers.
const OUT_OF_REACH: (u64, u64) = (3_200, 4_000);
/// How often of a hundred another one is, just before the leader ends in order.
const ONE_IS_OUT_OF_REACH: u64 = 50;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    KillLeader,
    /// Stopped until another leads.
    PauseLeader,
    /// Asked to, while the others work.
    EndLeader,
    KillFollower,
    StopServer,
}

/// How often each fault happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Doses {
    pub leader_kills: u32,
    pub pauses: u32,
    pub ends: u32,
    pub follower_kills: u32,
    pub server_stops: u32,
}

impl Doses {
    /// In proportion to the kills of a process that is alone: 10, 10, 10, 20 and 10 for 200.
    pub fn beside(kills: u32) -> Doses {
        let tenth = kills.div_ceil(20).max(1);
        Doses {
            leader_kills: tenth,
            pauses: tenth,
            ends: tenth,
            follower_kills: 2 * tenth,
            server_stops: tenth,
        }
    }

    fn in_order(self, random: &mut Random) -> Vec<Fault> {
        let kinds = [
            (Fault::KillLeader, self.leader_kills),
            (Fault::PauseLeader, self.pauses),
            (Fault::EndLeader, self.ends),
            (Fault::KillFollower, self.follower_kills),
            (Fault::StopServer, self.server_stops),
        ];
        let mut left: Vec<Fault> =
            kinds.iter().flat_map(|(fault, times)| std::iter::repeat_n(*fault, *times as usize)).collect();
        let mut ordered = Vec::new();
        while !left.is_empty() {
            ordered.push(left.swap_remove(random.index(left.len())));
        }
        ordered
    }
}

/// What all of them hit.
#[derive(Default)]
struct Toll {
    leader_kills: Vec<Hit>,
    pauses: Vec<Hit>,
    ends: Vec<Hit>,
    ends_without_one: u64,
    follower_kills: Vec<Hit>,
    server_stops: Vec<Hit>,
    take_overs: Vec<Duration>,
    hand_overs: Vec<Duration>,
    recoveries: Vec<Duration>,
    /// Entries of those who led after a pause, next to which none of the deposed was found.
    newer_entries: u64,
}

/// Does all of it to a fresh cluster, and judges what became of its jobs.
pub fn play(folder: &Path, doses: Doses, seed: u64) -> Result<Ledger> {
    let mut cluster = Cluster::start(folder, seed)?;
    let mut toll = Toll::default();
    for fault in doses.in_order(&mut cluster.random) {
        let (at, leader) = cluster.settle()?;
        std::thread::sleep(Duration::from_millis(cluster.random.between(50, 600)));
        eprintln!("{fault:?} while {} leads, under term {}", leader.name, leader.term);
        match fault {
            Fault::KillLeader => toll.kill_leader(&mut cluster, at, &leader)?,
            Fault::PauseLeader => toll.pause_leader(&mut cluster, at, &leader)?,
            Fault::EndLeader => toll.end_leader(&mut cluster, at, &leader)?,
            Fault::KillFollower => toll.kill_follower(&mut cluster, at)?,
            Fault::StopServer => toll.stop_server(&mut cluster)?,
        }
    }
    cluster.settle()?;
    let hand_backs = doses.ends;
    cluster.drain(toll.ledger(), hand_backs)
}

impl Toll {
    fn kill_leader(&mut self, cluster: &mut Cluster, at: usize, leader: &Leader) -> Result<()> {
        is_at_work(cluster, at)?;
        let (hit, died) = cluster.kill(at)?;
        self.leader_kills.push(hit);
        self.take_overs.push(taken_over(cluster, leader, died)?);
        cluster.begin_again(at)
    }

    /// Its successor must find all workers, also one whose slots it closed a moment before it ended.
    fn end_leader(&mut self, cluster: &mut Cluster, at: usize, leader: &Leader) -> Result<()> {
        is_at_work(cluster, at)?;
        let other = cluster.other_than(at);
        let one_is_still = cluster.random.chance(ONE_IS_OUT_OF_REACH);
        if one_is_still {
            signal(&cluster.members[other].child, Signal::STOP)?;
            let (shortest, longest) = OUT_OF_REACH;
            std::thread::sleep(Duration::from_millis(cluster.random.between(shortest, longest)));
            self.ends_without_one += 1;
        }
        let (hit, ended) = cluster.end(at)?;
        self.ends.push(hit);
        if one_is_still {
            cluster.go_on(other)?;
        }
        self.hand_overs.push(taken_over(cluster, leader, ended)?);
        cluster.begin_again(at)
    }

    fn pause_leader(&mut self, cluster: &mut Cluster, at: usize, leader: &Leader) -> Result<()> {
        is_at_work(cluster, at)?;
        signal(&cluster.members[at].child, Signal::STOP)?;
        let (process, stopped) = (cluster.members[at].process, clock::now());
        cluster.trail.look()?;
        self.pauses.push(cluster.trail.hit(process));
        self.take_overs.push(taken_over(cluster, leader, stopped)?);
        std::thread::sleep(Duration::from_millis(cluster.random.between(0, 1_500)));
        let resumed = cluster.go_on(at)?;
        let newest = cluster.until("it works again", RETURN, |cluster, _| {
            let terms = cluster.server.terms()?;
            ensure!(
                terms.too_late == 0,
                "{} entries were written by {} or others who led no more",
                terms.too_late,
                leader.name
            );
            let works = |start: Start| start.at > resumed && start.term > leader.term;
            let works = cluster.trail.latest_start(process).is_some_and(works);
            Ok((works && terms.newest > 0).then_some(terms.newest))
        })?;
        self.newer_entries += newest;
        Ok(())
    }

    /// One of the others, while it works on something.
    fn kill_follower(&mut self, cluster: &mut Cluster, leader: usize) -> Result<()> {
        let at = cluster.other_than(leader);
        is_at_work(cluster, at)?;
        let (hit, _) = cluster.kill(at)?;
        self.follower_kills.push(hit);
        cluster.begin_again(at)
    }

    fn stop_server(&mut self, cluster: &mut Cluster) -> Result<()> {
        cluster.server.stop_at_once()?;
        cluster.trail.look()?;
        let mut all = Hit::default();
        for member in &cluster.members {
            let hit = cluster.trail.hit(member.process);
            all.running += hit.running;
            all.unanswered.extend(hit.unanswered);
        }
        self.server_stops.push(all);
        std::thread::sleep(Duration::from_millis(cluster.random.between(0, 2_500)));
        cluster.server.start()?;
        let up = clock::now();
        let begun = cluster.until("work goes on", RECOVERY * PATIENCE, |_, starts| {
            Ok(starts.iter().find(|start| start.at > up).copied())
        })?;
        self.recoveries.push(Duration::from_nanos(begun.at - up));
        cluster.members.iter_mut().for_each(|member| member.since = up);
        Ok(())
    }

    fn ledger(self) -> Ledger {
        let mut ledger = Ledger::new("three processes over PostgreSQL");
        let running = |hits: &[Hit]| hits.iter().filter(|hit| hit.running > 0).count() as u64;
        let unanswered = |hits: &[Hit]| hits.iter().filter(|hit| !hit.unanswered.is_empty()).count() as u64;
        let mut hits = |names: [&'static str; 3], hits: &[Hit]| {
            let all = hits.len() as u64;
            ledger.count(names[0], all);
            ledger.count_rare(names[1], running(hits));
            ledger.count_rare(names[2], unanswered(hits));
        };
        hits(
            [
                "kills of the leader",
                "kills of the leader that found work running in it",
                "kills of the leader that found submissions without an answer",
            ],
            &self.leader_kills,
        );
        hits(
            [
                "pauses of the leader past its lease",
                "pauses that found work running in it",
                "pauses that found submissions without an answer",
            ],
            &self.pauses,
        );
        hits(
            [
                "ends of the leader in order",
                "ends that found work running in it",
                "ends that found submissions without an answer",
            ],
            &self.ends,
        );
        hits(
            [
                "stops of PostgreSQL",
                "stops that found work running",
                "stops that found submissions without an answer",
            ],
            &self.server_stops,
        );
        ledger.count_rare("ends while another was out of its reach", self.ends_without_one);
        let all: Vec<Hit> = [self.leader_kills, self.pauses, self.server_stops].concat();
        let count = all.len() as u64;
        ledger.count_most("of these that found work running", running(&all), count);
        ledger.count_most("of these that found submissions without an answer", unanswered(&all), count);
        ledger.count(
            "entries of those who led after a pause, and none of the deposed after them",
            self.newer_entries,
        );
        let followers = self.follower_kills.len() as u64;
        ledger.count("kills of a follower", followers);
        let name = "kills of a follower that found work running in it";
        ledger.count_most(name, running(&self.follower_kills), followers);
        ledger.time("without a leader", TAKE_OVER, self.take_overs);
        ledger.time("without a leader after one ended in order", TAKE_OVER, self.hand_overs);
        ledger.time("until work goes on after a start of PostgreSQL", RECOVERY, self.recoveries);
        ledger
    }
}

/// Until something begins that a later leader granted: how long that took.
fn taken_over(cluster: &mut Cluster, leader: &Leader, since: u64) -> Result<Duration> {
    let begun = cluster.until("another takes over", TAKE_OVER * PATIENCE, |_, starts| {
        Ok(starts.iter().find(|start| start.term > leader.term).copied())
    })?;
    Ok(Duration::from_nanos(begun.at.saturating_sub(since)))
}

/// Until a process works on something: what is done to one that is idle proves little.
fn is_at_work(cluster: &mut Cluster, at: usize) -> Result<()> {
    let process = cluster.members[at].process;
    cluster.until("it works", RETURN, |cluster, _| Ok((cluster.trail.hit(process).running > 0).then_some(())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doses_are_in_proportion_and_never_nothing() {
        let many = Doses { leader_kills: 10, pauses: 10, ends: 10, follower_kills: 20, server_stops: 10 };
        assert_eq!(Doses::beside(200), many);
        let one = Doses { leader_kills: 1, pauses: 1, ends: 1, follower_kills: 2, server_stops: 1 };
        assert_eq!(Doses::beside(12), one);
    }

    #[test]
    fn the_seed_decides_about_the_order_and_about_nothing_else() {
        let order = |seed| Doses::beside(200).in_order(&mut Random::new(seed));
        assert_eq!(order(1), order(1));
        assert_ne!(order(1), order(2));
        assert_eq!(order(2).iter().filter(|fault| **fault == Fault::PauseLeader).count(), 10);
        assert_eq!(order(2).len(), 60);
    }
}
