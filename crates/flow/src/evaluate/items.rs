//! The items of one loop, rendered slice after slice.

use super::render::Renderer;
use super::scope::{Callee, Scope};
use super::{at, no_such_step, work};
use crate::template::Compiled;
use minijinja::value::Value;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::sync::Arc;
use tidegate_core::model::Flow;
use tidegate_core::protocol::{BATCH_BYTES, Evaluation, Rendered, size_of_item};

/// What all items of a loop share, made once for all of its slices.
pub struct Items {
    base: BTreeMap<&'static str, Value>,
    callee: Callee,
    compiled: Arc<Compiled>,
}

impl Items {
    pub fn new(scope: &Scope) -> Items {
        Items { base: scope.base(), callee: scope.callee.clone(), compiled: Arc::default() }
    }

    /// What the items from index `from` on are to do, in index order, or why that cannot be said. Of large items only the
    /// first: all of a slice would be more than a store can take at once.
    pub fn evaluate(&self, flow: &Flow, step: usize, from: u32, items: &[Json]) -> Evaluation {
        let Some(step) = flow.steps.get(step) else { return no_such_step(flow, step) };
        let render = |(index, item): (u32, &Json)| {
            let renderer = Renderer::new(Scope::with_item(&self.base, item, index));
            let order = work::order(step, &self.callee, &renderer.compiled(self.compiled.clone()));
            order.map_err(|error| at(flow, step, &error))
        };
        let mut bytes = 0;
        let fits = |item: &Result<Rendered, String>| {
            let fits = bytes < BATCH_BYTES;
            bytes += size_of_item(item);
            fits
        };
        Evaluation::Items((from..).zip(items).map(render).take_while(fits).collect())
    }
}
