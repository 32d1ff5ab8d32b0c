//! What is not a task: limits, paces, workers, definitions.

use super::Backend;
use super::ledger::Ledger;
use super::samples::flow;
use std::sync::Arc;
use tidegate_core::admission::{LimitKey, Quota, Rate, Skills, SlotCounts};
use tidegate_core::model::{
    Action, ActionPolicy, LimitsDocument, QuotaPolicy, QuotaWindow, RatePolicy, Requirement, WhenExhausted,
};
use tidegate_core::protocol::{
    ActionRow, AuditRow, DeclaredRow, LimitRow, LimitValue, Override, Pace, TokenRow, WorkerRow, Write,
};
use tidegate_core::time::{Moment, Span};
use tidegate_store::{AUDIT_STAYS, Reads};

fn rate_policy() -> RatePolicy {
    RatePolicy { limit: 7, per: Span::hours(24), burst: 3, when_busy: WhenExhausted::Reject }
}

fn quota_policy() -> QuotaPolicy {
    QuotaPolicy { limit: 5, window: QuotaWindow::Week, zone: "UTC".into(), when_busy: WhenExhausted::Wait }
}

fn set(key: LimitKey, value: LimitValue) -> LimitRow {
    let set = Override { value, by: "ann".into(), at: Moment(4), until: Some(Moment(9)) };
    LimitRow { key, set: Some(set), paused: false }
}

fn limit_set(row: &LimitRow) -> Write {
    Write::LimitSet(Box::new(row.clone()))
}

pub fn limits_are_set_and_taken_back<B: Backend>() {
    let mut ledger = Ledger::<B>::open();
    let need = Requirement { labels: vec!["big".into()], ..Requirement::function("f".into()) };
    let rows = [
        LimitRow { key: LimitKey::Runs, set: None, paused: true },
        set(LimitKey::Action("a".into()), LimitValue::Units(0)),
        set(LimitKey::Pool("p".into()), LimitValue::Units(u32::MAX)),
        set(LimitKey::Quota { of: "a".into(), key: None }, LimitValue::Quota(quota_policy())),
        set(LimitKey::Rate { of: "a".into(), key: Some("k".into()) }, LimitValue::Rate(rate_policy())),
        LimitRow { key: LimitKey::Slot(need), set: None, paused: true },
    ];
    ledger.write(rows.iter().rev().map(limit_set));
    assert_eq!(ledger.load().limits, rows, "in the order of their keys");

    let changed = set(LimitKey::Action("a".into()), LimitValue::Units(8));
    let gone = LimitRow { key: LimitKey::Runs, set: None, paused: false };
    ledger.write([limit_set(&changed), limit_set(&gone), limit_set(&gone)]);
    let limits = ledger.load().limits;
    assert_eq!((limits.len(), &limits[0]), (5, &changed));
}

pub fn limits_are_told_apart_by_more_than_their_name<B: Backend>() {
    let mut ledger = Ledger::<B>::open();
    let one = LimitKey::Flow { flow: "a".into(), key: Some("b/c".into()) };
    let other = LimitKey::Flow { flow: "a/b".into(), key: Some("c".into()) };
    assert_eq!(one.to_string(), other.to_string());
    let rows = [set(one, LimitValue::Units(1)), set(other, LimitValue::Units(2))];
    ledger.write(rows.iter().map(limit_set));
    assert_eq!(ledger.load().limits, rows);
}

pub fn paces_keep_what_was_taken<B: Backend>() {
    let mut ledger = Ledger::<B>::open();
    let (mut rate, mut quota) = (Rate::new(rate_policy()), Quota::new(quota_policy()));
    let (of_rate, of_quota) =
        (LimitKey::Rate { of: "a".into(), key: None }, LimitKey::Quota { of: "a".into(), key: None });
    let taken = |key: &LimitKey, pace| Write::PaceTaken { key: key.clone(), pace };
    ledger.write([taken(&of_rate, Pace::Rate(rate.clone())), taken(&of_quota, Pace::Quota(quota.clone()))]);
    assert_eq!(ledger.load().paces[1], (of_rate.clone(), Pace::Rate(rate.clone())), "never used");

    rate.take(3, Moment(i64::MAX / 2));
    quota.take(2, Moment(1_000));
    let (rate, quota) = (Pace::Rate(rate), Pace::Quota(quota));
    ledger.write([taken(&of_rate, rate.clone()), taken(&of_quota, quota.clone())]);
    assert_eq!(ledger.load().paces, [(of_quota, quota), (of_rate, rate)]);
}

pub fn workers_join_change_and_go<B: Backend>() {
    let mut ledger = Ledger::<B>::open();
    let worker = |name: &str, io| WorkerRow {
        worker: name.into(),
        incarnation: u64::MAX,
        skills: Skills { functions: vec!["f".into()], ..Skills::plain() },
        slots: SlotCounts { process: 2, io },
    };
    let joined = |name, io| Write::WorkerJoined(Box::new(worker(name, io)));
    ledger.write([joined("b", 1), joined("a", 1), joined("c", 1)]);
    ledger.write([joined("b", 9), Write::WorkerGone { worker: "c".into(), at: Moment(3) }]);
    assert_eq!(ledger.load().workers, [worker("a", 1), worker("b", 9)]);
}

fn token(id: &str, until: Option<Moment>) -> TokenRow {
    let (name, by) = ("every night".into(), "ann".into());
    let scopes = vec!["read".into(), "run".into()];
    TokenRow { id: id.into(), name, hash: "ab".repeat(32), scopes, by, at: Moment(5), until }
}

pub fn tokens_are_made_and_revoked<B: Backend>() {
    let mut ledger = Ledger::<B>::open();
    let set = |row: &TokenRow| Write::TokenSet(Box::new(row.clone()));
    let (b, a, c) = (token("b", None), token("a", Some(Moment(9))), token("c", None));
    ledger.write([set(&b), set(&a), set(&c)]);
    assert_eq!(ledger.store.tokens().unwrap(), [a, b.clone(), c.clone()], "in the order of their ids");
    let later = token("a", Some(Moment(10)));
    ledger.write([set(&later), Write::TokenGone { id: "c".into() }, Write::TokenGone { id: "d".into() }]);
    assert_eq!(ledger.store.tokens().unwrap(), [later, b]);
}

pub fn changes_are_listed_newest_first_and_forgotten_in_the_end<B: Backend>() {
    let mut ledger = Ledger::<B>::open();
    let row = |number: u64, at: Moment| AuditRow {
        number,
        at,
        by: "ann".into(),
        what: "limit.set".into(),
        about: "pool:db".into(),
        more: number.is_multiple_of(2).then(|| "3".into()),
    };
    let rows = [3, 4, 9].map(|number| row(number, Moment(7)));
    ledger.write(rows.iter().map(|row| Write::Audited(Box::new(row.clone()))));
    let [first, second, third] = rows;
    assert_eq!(ledger.store.audit(None, 2).unwrap(), [third.clone(), second.clone()]);
    assert_eq!(ledger.store.audit(Some(9), 2).unwrap(), [second, first]);
    let late = row(12, Moment(7) + AUDIT_STAYS);
    ledger.write([Write::Audited(Box::new(late.clone()))]);
    assert_eq!(ledger.store.audit(None, 9).unwrap().len(), 4, "not a moment too early");
    let later = row(13, Moment(8) + AUDIT_STAYS);
    ledger.write([Write::Audited(Box::new(later.clone()))]);
    assert_eq!(ledger.store.audit(None, 9).unwrap(), [later, late]);
}

pub fn definitions_keep_their_order<B: Backend>() {
    let mut ledger = Ledger::<B>::open();
    let flow = |name, version| DeclaredRow::Flow { version, flow: Arc::new(flow(name, version)) };
    let versioned = |name: &str, version, max_losses| {
        let policy = ActionPolicy { max_losses, ..ActionPolicy::silent(name.into()) };
        let action = Arc::new(Action::function(policy));
        DeclaredRow::Action(ActionRow { version, action })
    };
    let action = |name, max_losses| versioned(name, 1, max_losses);
    let limits = |runs| DeclaredRow::Limits(LimitsDocument { runs, ..LimitsDocument::default() });
    let declared = |row| Write::Declared(Box::new(row));
    let first = [flow("z", 1), limits(None), action("m", 1), flow("a", 2), flow("z", 3), action("b", 1)];
    ledger.write(first.clone().map(declared));
    assert_eq!(ledger.load().declared, first);

    ledger.write([action("m", 2), limits(Some(4))].map(declared));
    let second = [flow("z", 1), flow("a", 2), flow("z", 3), action("b", 1), action("m", 2), limits(Some(4))];
    assert_eq!(ledger.load().declared, second, "what is declared anew stands last");

    let newer = versioned("m", 5, 2);
    ledger.write([declared(newer.clone())]);
    let third: Vec<DeclaredRow> = second.into_iter().chain([newer]).collect();
    assert_eq!(ledger.load().declared, third, "an earlier version stays");
}
