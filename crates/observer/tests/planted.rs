//! An honest record is found good, and each way to cheat in it is found.

use std::process::Command;
use tidegate_observer::{Case, Claim, Fact, Mode, Record, Recorder, Verdict, Violation, judge};

const JOBS: u64 = 40;
/// Executions at once, which is what limit 1 allows.
const WIDTH: u64 = 4;
const LENGTH: u64 = 100;
/// Line 1 has a limit of its own, of one.
const ALONE: u16 = 1;

fn case() -> Case {
    Case {
        limits: [(1, WIDTH as u32), (2, 1)].into(),
        must_reach: true,
        lines: [(ALONE, 0), (2, WIDTH as u32)].into(),
        overstay: 50,
        starts: 3,
        has_history: true,
    }
}

/// Four lanes of executions, end to end; lane 0 is line 1, whose limit is one.
fn honest() -> Vec<Record> {
    let mut records = Vec::new();
    for job in 1..=JOBS {
        let (lane, turn) = (job % WIDTH, job / WIDTH);
        let begin = 1_000 + turn * LENGTH + lane;
        let seen = |fact, at| {
            let second = Claim { limit: if lane == 0 { 2 } else { 0 }, units: u32::from(lane == 0) };
            Record {
                line: if lane == 0 { ALONE } else { 2 },
                process: 7,
                execution: job,
                claims: [Claim { limit: 1, units: 1 }, second],
                ..Record::new(fact, job, at)
            }
        };
        records.push(Record { order: job, ..Record::new(Fact::Acknowledged, job, job) });
        records.push(seen(Fact::Started, begin));
        records.push(seen(Fact::Ended, begin + LENGTH));
        records.push(Record { order: job, ..Record::new(Fact::Finished, job, 10_000) });
    }
    records
}

fn find(records: &mut [Record], fact: Fact, job: u64) -> &mut Record {
    let found = records.iter_mut().find(|record| (record.fact, record.job) == (fact, job));
    found.expect("the honest record has it")
}

fn found(records: &[Record]) -> Vec<Violation> {
    judge(&case(), records).violations
}

#[test]
fn an_honest_record_is_good() {
    let verdict = judge(&case(), &honest());
    let expected = Verdict {
        held: [(1, 4), (2, 1)].into(),
        acknowledged: JOBS,
        executions: JOBS,
        most_starts: 1,
        ordered: JOBS,
        finished: JOBS,
        ..Verdict::default()
    };
    assert_eq!(verdict, expected);
    assert!(verdict.is_good());
    assert!(!Verdict::default().is_good(), "who saw nothing cannot call it good");
}

#[test]
fn one_too_many_at_once_is_found() {
    let mut records = honest();
    // A nanosecond too long is enough.
    find(&mut records, Fact::Ended, 9).at += 1;
    let [Violation::Exceeded { limit: 1, capacity: 4, units: 5, .. }] = found(&records)[..] else {
        panic!("{:?}", found(&records));
    };
}

#[test]
fn a_limit_that_was_never_full_is_not_tested() {
    let mut records = honest();
    records.retain(|record| record.job % WIDTH != 1);
    assert_eq!(found(&records), [Violation::NotReached { limit: 1, capacity: 4, units: 3 }]);
}

#[test]
fn a_lost_job_is_found() {
    let mut records = honest();
    records.retain(|record| record.job != 17 || record.fact == Fact::Acknowledged);
    assert_eq!(found(&records), [Violation::Lost { job: 17 }]);

    let mut records = honest();
    records.retain(|record| (record.fact, record.job) != (Fact::Finished, 17));
    assert_eq!(found(&records), [Violation::Lost { job: 17 }], "it ran, and the store does not know");
    find(&mut records, Fact::Acknowledged, 17).fact = Fact::Found;
    assert_eq!(found(&records), [Violation::Lost { job: 17 }], "who is told so later is told all the same");
    let without_history = Case { has_history: false, ..case() };
    assert_eq!(judge(&without_history, &records).violations, []);
}

#[test]
fn a_job_that_finished_twice_is_found() {
    let mut records = honest();
    let row = *find(&mut records, Fact::Finished, 5);
    records.push(row);
    assert_eq!(found(&records), [Violation::FinishedTwice { job: 5, rows: 2 }]);
}

#[test]
fn a_job_that_nobody_ran_is_found() {
    let mut records = honest();
    records.retain(|record| record.job != 3 || !matches!(record.fact, Fact::Started | Fact::Ended));
    assert_eq!(found(&records), [Violation::NeverRun { job: 3 }]);

    let mut records = honest();
    find(&mut records, Fact::Finished, 3).fact = Fact::GivenUp;
    assert_eq!(found(&records), [Violation::GivenUp { job: 3 }]);
}

#[test]
fn a_swapped_order_is_found() {
    let mut records = honest();
    for fact in [Fact::Started, Fact::Ended] {
        let (first, second) = (find(&mut records, fact, 8).at, find(&mut records, fact, 12).at);
        find(&mut records, fact, 8).at = second;
        find(&mut records, fact, 12).at = first;
    }
    assert_eq!(found(&records), [Violation::OutOfOrder { job: 8, line: ALONE, overtaken_by: 1 }]);
    // In the wider line as many may begin together as may run together.
    let mut records = honest();
    find(&mut records, Fact::Started, 5).at += 5;
    assert_eq!(found(&records), []);

    // Whoever was granted in order and then had to wait for a core was not passed by.
    let mut records = honest();
    find(&mut records, Fact::Started, 5).at += 9 * LENGTH;
    find(&mut records, Fact::Ended, 5).at += 9 * LENGTH;
    let passed = |violation: &Violation| matches!(violation, Violation::OutOfOrder { .. });
    assert!(!found(&records).iter().any(passed), "{:?}", found(&records));
    for fact in [Fact::Started, Fact::Ended] {
        find(&mut records, fact, 5).execution = 1_000;
    }
    assert!(found(&records).iter().any(passed), "{:?}", found(&records));

    let mut records = honest();
    find(&mut records, Fact::Finished, 8).order = 12;
    let [Violation::Moved { job: 8, first: 8, second: 12 }] = found(&records)[..] else {
        panic!("{:?}", found(&records));
    };
}

#[test]
fn who_begins_after_his_time_is_found() {
    let dead = Record { process: 7, ..Record::new(Fact::Died, 0, 1_950) };
    let mut records = honest();
    records.push(dead);
    let late: Vec<u64> = records
        .iter()
        .filter(|record| record.fact == Fact::Started && record.at > 1_950)
        .map(|record| record.job)
        .collect();
    let violations = found(&records);
    assert!(!late.is_empty());
    for job in late {
        assert!(
            violations
                .iter()
                .any(|violation| matches!(violation, Violation::TooLate { job: other, .. } if *other == job))
        );
    }

    let mut records = honest();
    let start = find(&mut records, Fact::Started, 6);
    start.until = start.at - 1;
    let at = start.at;
    let violations = found(&records);
    assert!(violations.contains(&Violation::TooLate { job: 6, at }), "{violations:?}");
}

#[test]
fn what_a_dead_process_had_may_run_again_and_nothing_else() {
    let again = |process| {
        let mut records = honest();
        let last = *find(&mut records, Fact::Started, JOBS);
        let end = *find(&mut records, Fact::Ended, JOBS);
        records.push(Record { process, at: last.at + 500, ..last });
        records.push(Record { process, at: end.at + 500, ..end });
        (records, last.at)
    };
    let (mut records, start) = again(8);
    assert_eq!(found(&records), [Violation::RunTwice { job: JOBS, at: start + 500 }]);

    records.push(Record { process: 7, ..Record::new(Fact::Died, 0, start + 200) });
    let verdict = judge(&case(), &records);
    assert_eq!((&verdict.violations[..], verdict.run_again, verdict.ended_again), (&[][..], 1, 1));

    let once = Case { starts: 1, ..case() };
    let [Violation::StartedTooOften { job: JOBS, starts: 2, allowed: 1 }] =
        judge(&once, &records).violations[..]
    else {
        panic!("starts are counted");
    };
}

#[test]
fn who_is_killed_holds_nothing_any_more() {
    let mut records = honest();
    // Killed in the last turn: its ends are missing, and another process goes on.
    records.retain(|record| record.fact != Fact::Ended || record.job < JOBS);
    let last = *find(&mut records, Fact::Started, JOBS);
    records.push(Record { process: 7, ..Record::new(Fact::Died, 0, last.at + 10) });
    for (fact, at) in [(Fact::Started, last.at + 11), (Fact::Ended, last.at + 50)] {
        records.push(Record { fact, process: 8, at, ..last });
    }
    let verdict = judge(&case(), &records);
    assert_eq!((&verdict.violations[..], verdict.cut_short, verdict.run_again), (&[][..], 1, 1));
}

/// The last job of the last turn begins in a process that is stopped, and runs again elsewhere.
fn stopped(until: u64) -> (Vec<Record>, u64) {
    let mut records = honest();
    records.retain(|record| (record.fact, record.job) != (Fact::Ended, JOBS));
    let first = *find(&mut records, Fact::Started, JOBS);
    find(&mut records, Fact::Started, JOBS).until = first.at + 60;
    records.push(Record { fact: Fact::Renewed, until: first.at + until, ..first });
    for (fact, at) in [(Fact::Started, first.at + 90), (Fact::Ended, first.at + 95)] {
        records.push(Record { fact, process: 8, at, ..first });
    }
    (records, first.at)
}

#[test]
fn what_a_stopped_process_had_is_its_own_until_the_lease_ends() {
    let (mut records, begin) = stopped(80);
    let last = Record { process: 7, execution: JOBS, ..Record::new(Fact::Stopped, JOBS, begin + 600) };
    records.push(last);
    assert_eq!(found(&records), [Violation::Overstayed { job: JOBS, until: begin + 80 }]);
    records.push(Record { process: 7, ..Record::new(Fact::Resumed, 0, begin + 560) });
    let verdict = judge(&case(), &records);
    assert_eq!((&verdict.violations[..], verdict.lapsed, verdict.renewed), (&[][..], 1, 1));
    assert_eq!((verdict.run_again, verdict.most_starts, verdict.cut_short), (1, 2, 1));

    // A lease that was renewed counts to its new end.
    let (mut records, begin) = stopped(91);
    records.push(Record { at: begin + 100, ..last });
    let violations = found(&records);
    assert!(violations.contains(&Violation::RunTwice { job: JOBS, at: begin + 90 }), "{violations:?}");
    assert!(violations.iter().any(|violation| matches!(violation, Violation::Exceeded { limit: 2, .. })));
}

#[test]
fn an_end_without_a_start_is_found() {
    let mut records = honest();
    records.retain(|record| (record.fact, record.job) != (Fact::Started, 2));
    assert!(found(&records).contains(&Violation::NoStart { job: 2 }));
}

#[test]
fn the_program_says_the_same_as_the_function() {
    let folder = tempfile::tempdir().expect("a folder");
    let (promised, path) = (folder.path().join("case.json"), folder.path().join("records"));
    std::fs::write(&promised, serde_json::to_vec(&case()).expect("JSON")).expect("writable");
    let recorder = Recorder::open(&path, Mode::AtOnce).expect("a new file");
    honest().iter().for_each(|record| recorder.append(record));
    let judge =
        || Command::new(env!("CARGO_BIN_EXE_judge")).arg(&promised).arg(&path).output().expect("it runs");
    let good = judge();
    assert!(good.status.success());
    let text = String::from_utf8(good.stdout).expect("text");
    assert_eq!(
        text,
        "0 violations; 40 executions of 40 acknowledged jobs, 0 again, 40 in order; held at most {1: 4, 2: 1}\n"
    );
    recorder.append(&Record::new(Fact::Acknowledged, 1_000, 1));
    let bad = judge();
    assert_eq!(bad.status.code(), Some(1));
    assert_eq!(String::from_utf8(bad.stderr).expect("text"), "job 1000 was acknowledged and is lost\n");
}
