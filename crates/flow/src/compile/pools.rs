//! Demands on pools: names and units, checked against what is declared.

use super::context::Context;
use crate::grammar::MAX_SLOTS;
use crate::problem::{Problem, quoted};
use crate::yaml::Entry;
use std::collections::BTreeMap;
use tidegate_core::ids::Name;
use tidegate_core::model::Pool;

/// Every pool that is known, and whether there can be others.
pub(super) struct Pools {
    slots: BTreeMap<Name, u32>,
    complete: bool,
}

impl Pools {
    pub fn new(here: &[Pool], elsewhere: Option<&[Pool]>, declared: bool) -> Pools {
        let all = elsewhere.unwrap_or_default().iter().chain(here);
        Pools {
            slots: all.map(|pool| (pool.name.clone(), pool.slots)).collect(),
            complete: declared || elsewhere.is_some(),
        }
    }

    fn check(&self, cx: &mut Context<'_>, entry: &Entry, demand: u32) {
        match self.slots.get(entry.key.as_str()) {
            Some(&slots) if demand > slots => {
                let pool = entry.key.clone();
                cx.report(entry.node.span, Problem::PoolTooSmall { pool, demand, slots });
            }
            None if self.complete => {
                let meant = cx.nearest(&entry.key, self.slots.keys().map(Name::as_str));
                cx.report(entry.key_span, Problem::UnknownPool { pool: quoted(&entry.key), meant });
            }
            _ => {}
        }
    }
}

impl Pools {
    /// The first pool of which two that are taken together want more than there is.
    pub fn too_small(&self, some: &[(Name, u32)], others: &[(Name, u32)]) -> Option<Problem> {
        let other = |pool: &Name| others.iter().find(|(name, _)| name == pool).map(|(_, units)| *units);
        some.iter().find_map(|(pool, units)| {
            let (demand, slots) = (units + other(pool)?, *self.slots.get(pool)?);
            (demand > slots).then(|| Problem::PoolTooSmall { pool: pool.to_string(), demand, slots })
        })
    }
}

/// `pools: { database: 2 }`, sorted by name.
pub(super) fn demands(cx: &mut Context<'_>, entry: Option<&Entry>, pools: &Pools) -> Vec<(Name, u32)> {
    let Some(entry) = entry else { return Vec::new() };
    let mut demands = BTreeMap::new();
    for demand in cx.entries(entry) {
        let name = cx.name(&demand.key, demand.key_span, "a pool");
        let units = cx.count(&demand.node, &demand.key, 1..=MAX_SLOTS);
        if let (Some(name), Some(units)) = (name, units) {
            pools.check(cx, demand, units);
            demands.insert(name, units);
        }
    }
    demands.into_iter().collect()
}
