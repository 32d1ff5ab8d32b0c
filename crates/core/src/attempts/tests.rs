//! The machine by example. Times are milliseconds after the worker's start; leases last a second, so that
//! 606 ms are usable and a heartbeat is due every 202 ms.

use super::*;
use crate::ids::{Epoch, NodeId, TaskId};
use crate::protocol::Payload;

fn at(millis: i64) -> Moment {
    Moment(millis * 1_000)
}

fn lease(task: u64, grant: u64) -> Lease {
    Lease { task: TaskId::node(NodeId(task)), epoch: Epoch { incarnation: 1, grant } }
}

fn attempt(lease: Lease) -> Attempt {
    Attempt { lease, order: Payload::null(), length: Span::seconds(1), left: Span::seconds(1), number: 1 }
}

fn worker() -> Attempts {
    Attempts::new("w".into(), 7, GRACE, at(0))
}

/// Delivered at once, without waiting.
fn deliver(attempts: &mut Attempts, lease: Lease, millis: i64) -> Vec<Action> {
    attempts.received(attempt(lease), Span::ZERO, at(millis), at(millis))
}

fn succeeded() -> Outcome {
    Outcome::Succeeded(Payload::new("1"))
}

fn renewed(lease: Lease) -> Renewal {
    Renewal { renewed: vec![lease], stop: vec![] }
}

fn report(lease: Lease, outcome: Outcome) -> Vec<Action> {
    vec![Action::Report { lease, outcome }]
}

#[test]
fn an_attempt_starts_once_with_a_deadline_from_when_the_poll_was_sent() {
    let mut attempts = worker();
    let actions = attempts.received(attempt(lease(1, 1)), Span::millis(50), at(100), at(200));
    let terms = Terms::new(Span::seconds(1), GRACE);
    let deadline = at(150) + terms.usable();
    assert_eq!(
        actions,
        [Action::Start { attempt: attempt(lease(1, 1)), deadline, grace: Span::micros(333_333) }]
    );
    assert_eq!(deliver(&mut attempts, lease(1, 1), 300), []);
    assert_eq!(attempts.heartbeat(at(300)).has, [lease(1, 1)]);
}

#[test]
fn an_engine_that_claims_to_have_waited_longer_than_has_passed_gives_no_more_time() {
    let mut attempts = worker();
    let actions = attempts.received(attempt(lease(1, 1)), Span::hours(1), at(0), at(10));
    let latest = at(10) + Terms::new(Span::seconds(1), GRACE).usable();
    assert!(matches!(actions[..], [Action::Start { deadline, .. }] if deadline == latest));
}

#[test]
fn what_arrives_after_its_deadline_is_not_started() {
    let mut attempts = worker();
    assert_eq!(attempts.received(attempt(lease(1, 1)), Span::ZERO, at(0), at(700)), []);
    assert!(attempts.is_empty());
    assert_eq!(deliver(&mut attempts, lease(1, 1), 700).len(), 1, "it never ran, so a fresh delivery may");
}

#[test]
fn a_renewal_moves_the_deadline_from_when_the_heartbeat_was_sent() {
    let mut attempts = worker();
    deliver(&mut attempts, lease(1, 1), 0);
    let deadline = at(200) + Terms::new(Span::seconds(1), GRACE).usable();
    assert_eq!(
        attempts.renewed(&renewed(lease(1, 1)), at(200), at(400)),
        [Action::Extend { lease: lease(1, 1), deadline }]
    );
    assert_eq!(attempts.renewed(&renewed(lease(1, 1)), at(100), at(450)), [], "an older answer came late");
    assert_eq!(attempts.renewed(&renewed(lease(2, 2)), at(200), at(450)), [], "never had");
}

#[test]
fn a_renewal_that_comes_too_late_changes_nothing() {
    let mut attempts = worker();
    deliver(&mut attempts, lease(1, 1), 0);
    assert_eq!(attempts.renewed(&renewed(lease(1, 1)), at(600), at(650)), [], "not even before the tick");
    let actions = attempts.tick(at(651));
    assert_eq!(actions[0], Action::Abandon { lease: lease(1, 1) });
    assert!(matches!(&actions[1..], [Action::Heartbeat(beat)] if beat.has.is_empty()));
    assert_eq!(attempts.renewed(&renewed(lease(1, 1)), at(640), at(652)), []);
    assert_eq!(attempts.ended(lease(1, 1), succeeded(), at(660)), [], "dropped");
    assert!(attempts.is_empty());
    assert_eq!(deliver(&mut attempts, lease(1, 1), 670), [], "what was given up is not started again");
}

#[test]
fn a_result_at_the_deadline_is_dropped_even_before_the_tick() {
    let mut attempts = worker();
    deliver(&mut attempts, lease(1, 1), 0);
    assert_eq!(attempts.ended(lease(1, 1), succeeded(), at(607)), []);
    assert!(attempts.is_empty());
}

#[test]
fn a_report_is_repeated_until_it_is_acknowledged() {
    let mut attempts = worker();
    deliver(&mut attempts, lease(1, 1), 0);
    assert_eq!(attempts.ended(lease(1, 1), succeeded(), at(10)), report(lease(1, 1), succeeded()));
    assert_eq!(deliver(&mut attempts, lease(1, 1), 20), report(lease(1, 1), succeeded()), "asked again");
    let again = attempts.next_wake();
    assert!(
        attempts
            .tick(again)
            .iter()
            .any(|action| matches!(action, Action::Report { .. } | Action::Heartbeat(_)))
    );
    assert_eq!(
        attempts.heartbeat(at(700)).has,
        [lease(1, 1)],
        "still the worker's: the engine may wait for it"
    );
    assert!(attempts.tick(at(5_000)).contains(&report(lease(1, 1), succeeded())[0]), "it ended in time");
    attempts.reported(lease(1, 1), at(5_001));
    assert!(attempts.is_empty());
    assert_eq!(deliver(&mut attempts, lease(1, 1), 5_002), [], "a copy that was under way");
}

#[test]
fn a_new_engine_hears_everything_again() {
    let mut attempts = worker();
    deliver(&mut attempts, lease(1, 1), 0);
    deliver(&mut attempts, lease(2, 2), 0);
    attempts.ended(lease(1, 1), succeeded(), at(10));
    let actions = attempts.rejoined(at(20));
    assert_eq!(actions[0], report(lease(1, 1), succeeded())[0]);
    assert!(matches!(&actions[1..], [Action::Heartbeat(beat)] if beat.has == [lease(1, 1), lease(2, 2)]));
}

#[test]
fn a_newer_grant_waits_for_the_end_of_the_older() {
    let mut attempts = worker();
    deliver(&mut attempts, lease(1, 1), 0);
    assert_eq!(
        deliver(&mut attempts, lease(1, 2), 100),
        [Action::Stop { lease: lease(1, 1), reason: StopReason::Superseded }]
    );
    assert_eq!(attempts.heartbeat(at(100)).has, [lease(1, 2)], "the older is void");
    assert_eq!(deliver(&mut attempts, lease(1, 1), 110), [], "older epochs change nothing");
    let actions = attempts.ended(lease(1, 1), succeeded(), at(200));
    assert!(matches!(&actions[..], [Action::Start { attempt, .. }] if attempt.lease == lease(1, 2)));
}

#[test]
fn a_newer_grant_whose_time_runs_out_while_it_waits_is_not_started() {
    let mut attempts = worker();
    deliver(&mut attempts, lease(1, 1), 0);
    deliver(&mut attempts, lease(1, 2), 100);
    assert_eq!(attempts.ended(lease(1, 1), Outcome::Stopped, at(800)), []);
    assert!(attempts.is_empty());
}

#[test]
fn what_ended_is_said_until_it_is_acknowledged_whatever_was_granted_on_its_account() {
    let mut attempts = worker();
    deliver(&mut attempts, lease(1, 1), 0);
    attempts.ended(lease(1, 1), Outcome::failed("once"), at(10));
    assert!(matches!(deliver(&mut attempts, lease(1, 2), 20)[..], [Action::Start { .. }]));
    assert_eq!(attempts.abort(lease(1, 2), at(30)), [Action::Abandon { lease: lease(1, 2) }]);
    attempts.ended(lease(1, 2), Outcome::Stopped, at(40));
    assert_eq!(attempts.rejoined(at(50))[..1], report(lease(1, 1), Outcome::failed("once"))[..]);
    assert_eq!(deliver(&mut attempts, lease(1, 1), 60), report(lease(1, 1), Outcome::failed("once")));
    attempts.reported(lease(1, 1), at(70));
    assert!(attempts.is_empty());
}

#[test]
fn a_stop_is_confirmed_when_it_has_ended_and_an_end_that_came_first_wins() {
    for (outcome, expected) in [(Outcome::Stopped, Outcome::Stopped), (succeeded(), succeeded())] {
        let mut attempts = worker();
        deliver(&mut attempts, lease(1, 1), 0);
        let stop = Renewal { renewed: vec![], stop: vec![lease(1, 1)] };
        assert_eq!(
            attempts.renewed(&stop, at(200), at(210)),
            [Action::Stop { lease: lease(1, 1), reason: StopReason::Cancelled }]
        );
        assert_eq!(attempts.stop(lease(1, 1), at(220)), [], "told once");
        assert_eq!(attempts.heartbeat(at(230)).has, [lease(1, 1)], "its units are held until it has ended");
        assert_eq!(attempts.ended(lease(1, 1), outcome, at(240)), report(lease(1, 1), expected));
    }
}

#[test]
fn a_stop_that_overtakes_its_attempt_is_confirmed_and_nothing_starts() {
    let mut attempts = worker();
    assert_eq!(attempts.stop(lease(1, 1), at(0)), report(lease(1, 1), Outcome::Stopped));
    assert_eq!(deliver(&mut attempts, lease(1, 1), 1), report(lease(1, 1), Outcome::Stopped));
    attempts.reported(lease(1, 1), at(2));
    assert_eq!(deliver(&mut attempts, lease(1, 1), 3), []);
    assert_eq!(attempts.stop(lease(1, 1), at(4)), []);
}

#[test]
fn being_stopped_without_being_asked_is_a_failure() {
    let mut attempts = worker();
    deliver(&mut attempts, lease(1, 1), 0);
    let actions = attempts.ended(lease(1, 1), Outcome::Stopped, at(10));
    assert!(matches!(&actions[..], [Action::Report { outcome: Outcome::Failed(_), .. }]));
}

#[test]
fn a_draining_worker_finishes_what_it_has_and_hands_back_what_comes() {
    let mut attempts = worker();
    deliver(&mut attempts, lease(1, 1), 0);
    deliver(&mut attempts, lease(2, 2), 0);
    deliver(&mut attempts, lease(2, 3), 0);
    assert_eq!(attempts.drain(at(10)), report(lease(2, 3), Outcome::HandedBack), "it had not started");
    assert_eq!(deliver(&mut attempts, lease(3, 4), 20), report(lease(3, 4), Outcome::HandedBack));
    assert_eq!(attempts.ended(lease(1, 1), succeeded(), at(30)), report(lease(1, 1), succeeded()));
}

#[test]
fn a_worker_that_shuts_down_stops_everything_and_hands_it_back() {
    let mut attempts = worker();
    deliver(&mut attempts, lease(1, 1), 0);
    deliver(&mut attempts, lease(2, 2), 0);
    attempts.stop(lease(2, 2), at(5));
    assert_eq!(
        attempts.shut_down(at(10)),
        [Action::Stop { lease: lease(1, 1), reason: StopReason::ShuttingDown }],
        "the cancelled one was told already"
    );
    assert_eq!(
        attempts.ended(lease(1, 1), Outcome::Stopped, at(20)),
        report(lease(1, 1), Outcome::HandedBack)
    );
    assert_eq!(attempts.ended(lease(2, 2), Outcome::Stopped, at(20)), report(lease(2, 2), Outcome::Stopped));
    assert!(!attempts.is_empty());
    attempts.reported(lease(1, 1), at(30));
    attempts.reported(lease(2, 2), at(30));
    assert!(attempts.is_empty());
}

#[test]
fn heartbeats_follow_the_shortest_lease_and_go_on_when_there_is_nothing() {
    let mut attempts = worker();
    let idle = attempts.next_wake();
    assert_eq!(idle, at(0) + Terms::new(LEASE, GRACE).beat());
    let mut long = attempt(lease(1, 1));
    (long.length, long.left) = (LEASE, LEASE);
    attempts.received(long, Span::ZERO, at(0), at(0));
    assert_eq!(attempts.next_wake(), idle);
    deliver(&mut attempts, lease(2, 2), 0);
    assert_eq!(attempts.next_wake(), Moment(202_222));
    let actions = attempts.tick(attempts.next_wake());
    assert!(matches!(&actions[..], [Action::Heartbeat(beat)]
        if beat.has == [lease(1, 1), lease(2, 2)] && beat.incarnation == 7));
    assert!(attempts.next_wake() > Moment(202_222), "a tick always leaves the next wake later");
}

#[test]
fn a_result_counts_up_to_the_last_moment_before_its_deadline() {
    let deadline = at(0) + Terms::new(Span::seconds(1), GRACE).usable();
    for (ends, reported) in [(deadline - Span::micros(1), true), (deadline, false)] {
        let mut attempts = worker();
        deliver(&mut attempts, lease(1, 1), 0);
        let actions = attempts.ended(lease(1, 1), succeeded(), ends);
        assert_eq!(actions == report(lease(1, 1), succeeded()), reported, "{ends:?}");
    }
}

#[test]
fn a_newer_grant_waits_for_the_end_of_what_was_given_up() {
    let mut attempts = worker();
    deliver(&mut attempts, lease(1, 1), 0);
    assert!(attempts.tick(at(650)).contains(&Action::Abandon { lease: lease(1, 1) }));
    assert_eq!(deliver(&mut attempts, lease(1, 2), 700), [], "the older one is still at the runner");
    let actions = attempts.ended(lease(1, 1), Outcome::Stopped, at(750));
    assert!(matches!(&actions[..], [Action::Start { attempt, .. }] if attempt.lease == lease(1, 2)));
}
