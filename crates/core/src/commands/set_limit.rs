//! An operator sets a limit, or takes back what was set. The declared value is kept apart and comes back.

use crate::admission::LimitKey;
use crate::core::Core;
use crate::names;
use crate::protocol::{Answer, LimitRow, LimitValue, Override, Refusal, SetLimit, Write};
use crate::time::Moment;

impl Core {
    pub(crate) fn set_limit(&mut self, set: SetLimit, now: Moment) -> Result<Answer, Refusal> {
        let SetLimit { key, value, by, until } = set;
        names::of_limit(&key)?;
        let fits = match (&key, &value) {
            (LimitKey::Slot(_), _) => false,
            (_, None) => true,
            (LimitKey::Rate { .. }, Some(value)) => matches!(value, LimitValue::Rate(_)),
            (LimitKey::Quota { .. }, Some(value)) => matches!(value, LimitValue::Quota(_)),
            (_, Some(value)) => matches!(value, LimitValue::Units(_)),
        };
        if !fits {
            return Err(Refusal::WrongValue(key.to_string()));
        }
        if let LimitKey::Pool(pool) = &key
            && self.catalog.pool(pool).is_none()
        {
            return Err(Refusal::UnknownPool(pool.clone()));
        }
        let set = value.map(|value| Override { value, by, at: now, until });
        self.change_setting(key, set, now);
        Ok(Answer::Done)
    }

    pub(crate) fn change_setting(&mut self, key: LimitKey, set: Option<Override>, now: Moment) {
        let setting = self.catalog.settings.entry(key.clone()).or_default();
        if let Some(until) = setting.set.as_ref().and_then(|set| set.until) {
            self.override_ends.remove(&(until, key.clone()));
        }
        if let Some(until) = set.as_ref().and_then(|set| set.until) {
            self.override_ends.insert((until, key.clone()));
        }
        setting.set = set;
        self.setting_changed(key, now);
    }

    /// Writes a setting down and lets it count: for who runs at once, for who waits when it next asks.
    pub(crate) fn setting_changed(&mut self, key: LimitKey, now: Moment) {
        let setting = self.catalog.settings.get(&key).cloned().unwrap_or_default();
        if setting.set.is_none() && !setting.paused {
            self.catalog.settings.remove(&key);
        }
        let (set, paused) = (setting.set, setting.paused);
        self.write(Write::LimitSet(Box::new(LimitRow { key, set, paused })));
        self.resolve_anew(now);
    }
}

#[cfg(test)]
mod tests {
    use crate::admission::LimitKey;
    use crate::model::{QuotaPolicy, QuotaWindow, RatePolicy, Requirement, WhenExhausted};
    use crate::protocol::{Answer, Command, LimitValue, Refusal, SetLimit};
    use crate::testkit::{Kit, limits, pool, set};
    use crate::time::Span;

    #[test]
    fn a_limit_takes_only_its_own_kind_of_value() {
        let mut kit = Kit::new(1);
        kit.declare(Vec::new(), Vec::new(), Some(limits(&[("db", 1)])));
        let when_busy = WhenExhausted::Wait;
        let units = LimitValue::Units(1);
        let rate = LimitValue::Rate(RatePolicy { limit: 1, per: Span::seconds(1), burst: 1, when_busy });
        let window = QuotaWindow::Day;
        let quota = LimitValue::Quota(QuotaPolicy { limit: 1, window, zone: "UTC".into(), when_busy });
        let of_rate = LimitKey::Rate { of: "work".into(), key: None };
        let of_quota = LimitKey::Quota { of: "work".into(), key: None };
        let slot = LimitKey::Slot(Requirement::process());
        let wrong = [
            (pool("db"), Some(rate.clone())),
            (pool("db"), Some(quota.clone())),
            (of_rate.clone(), Some(units.clone())),
            (of_rate.clone(), Some(quota.clone())),
            (of_quota.clone(), Some(units.clone())),
            (of_quota.clone(), Some(rate.clone())),
            (slot.clone(), Some(units.clone())),
            (slot, None),
        ];
        for (key, value) in wrong {
            let refusal = Refusal::WrongValue(key.to_string());
            assert_eq!(kit.refused(set(key, value)), refusal);
        }
        for (key, value) in [(pool("db"), units), (of_rate, rate), (of_quota, quota)] {
            assert_eq!(kit.set(key.clone(), Some(value)), Answer::Done);
            assert_eq!(kit.set(key, None), Answer::Done);
        }
        assert_eq!(kit.refused(set(pool("gone"), None)), Refusal::UnknownPool("gone".into()));
    }

    #[test]
    fn a_new_word_forgets_when_the_old_one_would_have_ended() {
        let mut kit = Kit::new(0);
        let until = Some(kit.now + Span::seconds(5));
        let key = LimitKey::Runs;
        let command = SetLimit { key, value: Some(LimitValue::Units(1)), by: "me".into(), until };
        kit.apply(Command::SetLimit(command));
        assert_eq!(kit.core.next_wake(), until);
        kit.set(LimitKey::Runs, Some(LimitValue::Units(2)));
        kit.advance(Span::seconds(6));
        assert_eq!(kit.writes, [], "nothing ended");
        kit.set(LimitKey::Runs, None);
        assert!(kit.core.catalog.settings.is_empty());
    }
}
