//! What a process is started with: a program and its arguments, what it finds around it, and who it is.

use crate::secrets::Secrets;
use std::collections::BTreeMap;
use tidegate_core::ids::{RunId, TaskId};
use tidegate_core::model::Surroundings;
use tidegate_core::protocol::{Attempt, Lease};

/// What carries scripts out: every system has it.
const SHELL: &str = "sh";

/// Which attempt something belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identity {
    pub(crate) run: RunId,
    pub(crate) lease: Lease,
    /// Which try it is, from 1.
    number: u32,
}

pub(crate) struct Program {
    pub(crate) run: RunId,
    pub(crate) argv: Vec<String>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) cwd: Option<String>,
    /// What it knows and nobody else may see.
    pub(crate) secrets: Secrets,
}

impl Program {
    /// The error is a sentence.
    pub(crate) fn new(
        argv: Vec<String>,
        around: Surroundings,
        identity: &Identity,
    ) -> Result<Program, String> {
        let Surroundings { env, cwd } = around;
        let mut secrets = Secrets::default();
        let reveal = |(name, text)| Ok((name, secrets.reveal(&text)?));
        let mut env = env.into_iter().map(reveal).collect::<Result<BTreeMap<String, String>, String>>()?;
        env.extend(identity.variables());
        Ok(Program { run: identity.run, argv, env, cwd, secrets })
    }

    /// A script. The error is a sentence.
    pub(crate) fn script(
        script: String,
        around: Surroundings,
        identity: &Identity,
    ) -> Result<Program, String> {
        Program::new(vec![SHELL.to_owned(), "-c".to_owned(), script], around, identity)
    }
}

impl Identity {
    pub(crate) fn new(attempt: &Attempt, run: RunId) -> Identity {
        Identity { run, lease: attempt.lease, number: attempt.number }
    }

    /// What a process can know about itself. The task is the same for all attempts, so it serves as idempotency
    /// key; the epoch only grows, so it serves as fencing token. An order cannot change them.
    fn variables(&self) -> [(String, String); 4] {
        [
            ("TIDEGATE_RUN".into(), self.run.to_string()),
            ("TIDEGATE_TASK".into(), task(self.lease.task)),
            ("TIDEGATE_ATTEMPT".into(), self.number.to_string()),
            ("TIDEGATE_EPOCH".into(), self.lease.epoch.to_string()),
        ]
    }
}

/// `7`, and `7#1` for the second item of a loop.
fn task(task: TaskId) -> String {
    match task.index() {
        None => task.node.0.to_string(),
        Some(index) => format!("{}#{index}", task.node.0),
    }
}
