//! What this program has defined: actions with their functions, flows, pools.
//!
//! Every change counts at once here, and reaches the engine before the next submission or start of work. The same
//! definitions again, from another start or another process, change nothing.

use crate::error::Error;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tidegate_core::ids::Name;
use tidegate_core::model::{Action, Flow, LimitsDocument, Pool};
use tidegate_core::protocol::{Answer, Command, Declare};
use tidegate_engine::{Definition, Engine};
use tidegate_flow::Document;
use tidegate_worker::Functions;
use tokio::sync::watch;

#[derive(Default)]
pub(crate) struct Definitions {
    pub actions: BTreeMap<Name, Arc<Action>>,
    pub functions: Functions,
    flows: BTreeMap<Name, Arc<Flow>>,
    /// Nothing: this program says nothing about limits, and what was declared before stays.
    limits: Option<LimitsDocument>,
    files: BTreeSet<Name>,
}

impl Definitions {
    /// Replaces the pool of this name.
    pub fn set_pool(&mut self, pool: Pool) {
        let pools = &mut self.limits.get_or_insert_default().pools;
        pools.retain(|known| known.name != pool.name);
        pools.push(pool);
    }

    pub fn pools(&self) -> Option<Vec<Pool>> {
        self.limits.as_ref().map(|limits| limits.pools.clone())
    }

    /// Replaces what has the same name. Limits replace all limits, except pools that only code knows of.
    pub fn add(&mut self, document: Document) {
        self.files.extend(document.files);
        for flow in document.flows {
            self.flows.insert(flow.name.clone(), Arc::new(flow));
        }
        for action in document.actions {
            self.actions.insert(action.policy.action.clone(), Arc::new(action));
        }
        if let Some(mut limits) = document.limits {
            let known = self.pools().unwrap_or_default();
            let is_kept = |pool: &Pool| limits.pools.iter().all(|new| new.name != pool.name);
            let kept: Vec<Pool> = known.into_iter().filter(is_kept).collect();
            limits.pools.extend(kept);
            self.limits = Some(limits);
        }
    }

    fn declare(&self) -> Declare {
        Declare {
            flows: self.flows.values().map(|flow| Flow::clone(flow)).collect(),
            actions: self.actions.values().map(|action| Action::clone(action)).collect(),
            limits: self.limits.clone(),
            files: self.files.iter().cloned().collect(),
        }
    }
}

pub(crate) struct Registry {
    definitions: Mutex<Definitions>,
    /// How often something changed.
    changes: watch::Sender<u64>,
    /// How many of these changes the engine knows of.
    declared: AtomicU64,
    /// Held while the engine is told, so that who comes second waits for the answer too.
    telling: tokio::sync::Mutex<()>,
}

impl Registry {
    pub fn new() -> Registry {
        Registry {
            definitions: Mutex::default(),
            changes: watch::Sender::new(0),
            declared: AtomicU64::new(0),
            telling: tokio::sync::Mutex::default(),
        }
    }

    pub fn read(&self) -> MutexGuard<'_, Definitions> {
        self.definitions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn change(&self, change: impl FnOnce(&mut Definitions)) {
        let mut definitions = self.read();
        change(&mut definitions);
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// Tells when something changes.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Tells the engine whatever it does not know yet.
    pub async fn declare(&self, engine: &Engine) -> Result<(), Error> {
        if self.declared.load(Ordering::SeqCst) == *self.changes.borrow() {
            return Ok(());
        }
        let _telling = self.telling.lock().await;
        let (changes, declare) = {
            let definitions = self.read();
            (*self.changes.borrow(), definitions.declare())
        };
        if self.declared.load(Ordering::SeqCst) == changes {
            return Ok(());
        }
        match engine.insist(Command::Declare(declare)).await? {
            Answer::Refused(refusal) => Err(refusal.into()),
            _ => {
                self.declared.store(changes, Ordering::SeqCst);
                Ok(())
            }
        }
    }

    /// What this program says a name stands for.
    pub fn definition(&self, name: &Name) -> Option<Definition> {
        let definitions = self.read();
        let action = || definitions.actions.get(name).cloned().map(Definition::Action);
        action().or_else(|| definitions.flows.get(name).cloned().map(Definition::Flow))
    }
}
