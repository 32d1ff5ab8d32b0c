//! An operator sets a limit, or takes back what was set. The declared value is kept apart and comes back.

use crate::admission::LimitKey;
use crate::core::Core;
use crate::protocol::{Answer, LimitRow, LimitValue, Override, Refusal, SetLimit, Write};
use crate::time::Moment;

impl Core {
    pub(crate) fn set_limit(&mut self, set: SetLimit, now: Moment) -> Result<Answer, Refusal> {
        let SetLimit { key, value, by, until } = set;
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
