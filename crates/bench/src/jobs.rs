//! Jobs that do nothing but write down that they ran.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tidegate_core::ids::Epoch;
use tidegate_core::protocol::{Outcome, Payload};
use tidegate_observer::{Claim, Fact, Record, Recorder, clock};
use tidegate_worker::{Ctx, Functions};
use tokio::sync::{Barrier, Notify};

/// What the jobs of one action write down about themselves, and how long they take.
#[derive(Clone, Copy, Debug, Default)]
pub struct Kind {
    pub line: u16,
    pub claims: [Claim; 2],
    pub takes: Duration,
    /// They write down until when their lease lasts, too.
    pub is_leased: bool,
    /// The first that are executed wait for each other, this many: jobs that do nothing would hardly ever meet, and a
    /// limit that is never reached is not tested.
    pub meet: u32,
}

/// How long those who are to meet wait for each other. If they do not, the observer says so.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often an execution that takes long looks whether its lease was renewed.
const LOOK_AT_LEASE: Duration = Duration::from_millis(50);

/// Everything that one process executes.
pub struct Jobs {
    recorder: Option<Recorder>,
    process: u32,
    ended: AtomicU64,
    wanted: AtomicU64,
    all_ended: Notify,
}

impl Jobs {
    /// Without a recorder nothing is written down.
    pub fn new(recorder: Option<Recorder>, process: u32) -> Arc<Jobs> {
        Arc::new(Jobs {
            recorder,
            process,
            ended: AtomicU64::new(0),
            wanted: AtomicU64::new(u64::MAX),
            all_ended: Notify::new(),
        })
    }

    /// Registers an action whose jobs have a number as their input, or an object with one number; those that are given none
    /// have that of their task.
    pub fn register(self: &Arc<Self>, functions: &mut Functions, action: &str, kind: Kind) {
        let jobs = self.clone();
        let meeting = Arc::new(Meeting::new(kind.meet));
        functions.register(action, move |ctx: Ctx, input: Payload| {
            let (jobs, meeting) = (jobs.clone(), meeting.clone());
            let job = number(&input).unwrap_or(ctx.task().node.0);
            let call = Call { job, execution: grant(ctx.epoch()), kind, ctx };
            async move { jobs.execute(&call, &meeting).await }
        });
    }

    async fn execute(&self, call: &Call, meeting: &Meeting) -> Outcome {
        self.record(Fact::Started, call);
        let mut unfinished = Unfinished { jobs: self, call, has_ended: false };
        meeting.attend().await;
        match call.kind.takes.is_zero() {
            // Others that were granted with it begin before it ends, as they would if it did anything.
            true => tokio::task::yield_now().await,
            false => self.take_time(call).await,
        }
        self.record(Fact::Ended, call);
        unfinished.has_ended = true;
        if self.ended.fetch_add(1, Ordering::Relaxed) + 1 == self.wanted.load(Ordering::Relaxed) {
            self.all_ended.notify_one();
        }
        Outcome::Succeeded(Payload::null())
    }

    /// Meanwhile writes down when the lease was renewed.
    async fn take_time(&self, call: &Call) {
        let (end, mut until) = (Instant::now() + call.kind.takes, call.ctx.lease_ends());
        while Instant::now() < end {
            tokio::time::sleep(end.saturating_duration_since(Instant::now()).min(LOOK_AT_LEASE)).await;
            let now_until = call.ctx.lease_ends();
            if now_until.saturating_duration_since(until) > LOOK_AT_LEASE {
                until = now_until;
                self.record(Fact::Renewed, call);
            }
        }
    }

    fn record(&self, fact: Fact, call: &Call) {
        let Some(recorder) = &self.recorder else { return };
        let Call { job, execution, kind, ctx } = call;
        let at = clock::now();
        // A process that was stopped may find that it has passed.
        let until = || {
            let (now, ends) = (Instant::now(), ctx.lease_ends());
            let (left, gone) = (ends.saturating_duration_since(now), now.saturating_duration_since(ends));
            at + left.as_nanos() as u64 - gone.as_nanos() as u64
        };
        recorder.append(&Record {
            line: kind.line,
            process: self.process,
            execution: *execution,
            claims: kind.claims,
            until: if kind.is_leased { until() } else { 0 },
            ..Record::new(fact, *job, at)
        });
    }

    /// A caller asks for the job, or was told that it has this place in line.
    pub fn told(&self, fact: Fact, job: u64, order: u64) {
        if let Some(recorder) = &self.recorder {
            let process = self.process;
            recorder.append(&Record { order, process, ..Record::new(fact, job, clock::now()) });
        }
    }

    /// How many were executed.
    pub fn ended(&self) -> u64 {
        self.ended.load(Ordering::Relaxed)
    }

    /// How many are to be executed. To be said before the first of them begins.
    pub fn want(&self, jobs: u64) {
        self.ended.store(0, Ordering::Relaxed);
        self.wanted.store(jobs, Ordering::Relaxed);
    }

    /// Until all that are wanted have been executed.
    pub async fn all_ended(&self) {
        while self.ended.load(Ordering::Relaxed) < self.wanted.load(Ordering::Relaxed) {
            self.all_ended.notified().await;
        }
    }

    /// Puts what was gathered into the file.
    pub fn flush(&self) {
        self.recorder.iter().for_each(Recorder::flush);
    }
}

/// One execution.
struct Call {
    job: u64,
    execution: u64,
    kind: Kind,
    ctx: Ctx,
}

/// Dropped before it has ended, it was stopped.
struct Unfinished<'a> {
    jobs: &'a Jobs,
    call: &'a Call,
    has_ended: bool,
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if !self.has_ended {
            self.jobs.record(Fact::Stopped, self.call);
        }
    }
}

/// Grants of a later leader have higher numbers, and no leader makes so many.
fn grant(epoch: Epoch) -> u64 {
    u64::from(epoch.incarnation) << 40 | epoch.grant
}

/// The first executions of an action.
struct Meeting {
    expected: u32,
    begun: AtomicU32,
    barrier: Barrier,
}

impl Meeting {
    fn new(expected: u32) -> Meeting {
        Meeting { expected, begun: AtomicU32::new(0), barrier: Barrier::new(expected as usize) }
    }

    async fn attend(&self) {
        if self.expected > 0 && self.begun.fetch_add(1, Ordering::Relaxed) < self.expected {
            // Whoever waits in vain goes on alone.
            let _ = tokio::time::timeout(PATIENCE, self.barrier.wait()).await;
        }
    }
}

/// The number in an input.
fn number(input: &Payload) -> Option<u64> {
    let digits = input.bytes().iter().filter(|byte| byte.is_ascii_digit());
    digits.fold(None, |number, digit| Some(number.unwrap_or(0) * 10 + u64::from(digit - b'0')))
}
