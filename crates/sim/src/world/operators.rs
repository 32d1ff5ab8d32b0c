//! Operators: they change limits while work goes on, pause things, and put everything right in the end.

use super::clients::{About, Intent};
use super::plan::{KEYS, RESCOPED};
use super::{Event, World};
use tidegate_core::admission::LimitKey;
use tidegate_core::ids::{Name, TaskId};
use tidegate_core::protocol::{Command, Declare, LimitValue, Pausable, SetLimit};
use tidegate_core::time::{Moment, Span};

impl World {
    pub(super) fn cancel_something(&mut self) {
        if let Some(node) = self.some_root() {
            self.oracle.cancelling(node, self.now);
            self.ask(Command::Cancel(TaskId::node(node)), About::Cancel(node));
        }
    }

    pub(super) fn change_limit(&mut self) {
        let key = match self.random.below(5) {
            4 => LimitKey::ActionKey { action: "keyed".into(), key: Name::from(*self.random.pick(&KEYS)) },
            n => LimitKey::Pool(Name::from(["tool", "right", "left", "gate"][n as usize])),
        };
        let value = self.random.below(8) as u32;
        let span = Span::millis(self.random.between(500, 8_000));
        let expires = self.random.chance(30);
        self.set_limit(key.clone(), Some(value), expires.then_some(self.now + span));
        self.clients.changed.push(key.clone());
        let over = if expires { Intent::LimitIsOver(key) } else { Intent::RestoreLimit(key) };
        self.after(span, Event::Client(over));
    }

    pub(super) fn set_limit(&mut self, key: LimitKey, value: Option<u32>, until: Option<Moment>) {
        self.oracle.count_fault("limit changed");
        self.oracle.limit_is_changing(&key, value, self.now);
        let set = SetLimit { key, value: value.map(LimitValue::Units), by: "operator".into(), until };
        self.ask(Command::SetLimit(set), About::Limit);
    }

    /// The limit of one action is declared anew: another number, or none at all.
    pub(super) fn rescope(&mut self, limit: Option<u32>) {
        self.oracle.count_fault("limit declared anew");
        let mut actions = self.plan.actions.clone();
        actions.retain(|action| action.policy.action.as_str() == RESCOPED);
        actions.iter_mut().for_each(|action| action.policy.each.concurrency = limit);
        for key in KEYS {
            let key = LimitKey::ActionKey { action: RESCOPED.into(), key: key.into() };
            self.oracle.limit_is_changing(&key, Some(limit.unwrap_or(u32::MAX)), self.now);
        }
        let declare = Declare { actions, ..Declare::default() };
        self.ask(Command::Declare(declare), About::Other);
    }

    pub(super) fn pause_something(&mut self) {
        let what = match self.random.below(4) {
            0 => Pausable::Limit(LimitKey::Pool(Name::from(*self.random.pick(&["left", "gate", "tool"])))),
            1 => {
                let kind = self.random.index(self.plan.kinds.len());
                Pausable::Action(self.plan.kinds[kind].action.clone())
            }
            _ => {
                let Some(node) = self.some_root() else { return };
                self.oracle.reranked(node);
                Pausable::Node(node)
            }
        };
        self.oracle.count_fault("paused");
        self.oracle.pausing(self.now);
        self.clients.paused.push(what.clone());
        self.ask(Command::Pause(what.clone()), About::Paused { what: what.clone(), asked: self.now });
        let span = Span::millis(self.random.between(100, 9_000));
        self.after(span, Event::Client(Intent::Resume(what)));
    }

    pub(super) fn resume(&mut self, what: Pausable) {
        self.oracle.resuming(&what, self.now);
        self.ask(Command::Resume(what), About::Resumed);
    }

    /// What was lowered is raised again, what was paused goes on.
    pub(super) fn operators_heal(&mut self) {
        // Twice, because what was sent before may still be on its way, and a process that ends may be away for a while.
        let again = Span::seconds(if self.plan.embedded { 20 } else { 6 });
        for wait in [Span::ZERO, again] {
            for key in self.clients.changed.clone() {
                self.after(wait, Event::Client(Intent::RestoreLimit(key)));
            }
            for what in self.clients.paused.clone() {
                self.after(wait, Event::Client(Intent::Resume(what)));
            }
        }
    }

    /// Claims every pool as a whole and every narrow action once: what leaked is missed now.
    pub(super) fn probe(&mut self) {
        for name in ["gateall", "leftall", "rightall", "toolall", "retried", "solo"] {
            let kind = self.plan.kinds.iter().position(|kind| kind.action.as_str() == name);
            if let Some(kind) = kind {
                self.clients.planned += 1;
                self.submit_job(kind);
            }
        }
    }
}
