//! Engine time: the store's clock when a lead was taken or extended, plus what the local clock has counted since.
//! A wrong wall clock of a machine therefore changes no decision.

use tidegate_core::time::Moment;

/// `local` is any clock that only goes forward.
#[derive(Clone, Copy, Debug, Default)]
pub struct EngineClock {
    store: Moment,
    local: Moment,
}

impl EngineClock {
    /// A lead begins: what the local clock said before means nothing.
    pub fn begin(&mut self, store: Moment, local: Moment) {
        *self = EngineClock { store, local };
    }

    /// The store said `store` when the local clock said `local`. Engine time never goes back for it.
    pub fn set(&mut self, store: Moment, local: Moment) {
        let before = self.at(local);
        *self = EngineClock { store: store.max(before), local };
    }

    pub fn at(&self, local: Moment) -> Moment {
        self.store + local.since(self.local)
    }

    /// The local time at which engine time will be `moment`.
    pub fn local(&self, moment: Moment) -> Moment {
        self.local + moment.since(self.store)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::time::Span;

    #[test]
    fn follows_the_store_and_never_goes_back() {
        let mut clock = EngineClock::default();
        clock.begin(Moment(5_000), Moment(100));
        assert_eq!(clock.at(Moment(100)), Moment(5_000));
        assert_eq!(clock.at(Moment(350)), Moment(5_250));
        clock.set(Moment(5_100), Moment(400));
        assert_eq!(clock.at(Moment(400)), Moment(5_300), "the store's clock fell behind");
        clock.set(Moment(9_000), Moment(500));
        assert_eq!(clock.at(Moment(500)), Moment(9_000));
        assert_eq!(clock.at(clock.local(Moment(9_000) + Span(7))), Moment(9_007));
    }
}
