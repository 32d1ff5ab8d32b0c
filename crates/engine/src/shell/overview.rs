//! What operators ask: whoever leads answers.

use super::{Engine, EngineError};
use tidegate_core::admission::LimitKey;
use tidegate_core::ids::Name;
use tidegate_core::overview::{
    DefinitionView, Kind, LimitDetail, LimitView, LimitsWanted, NameStats, Queue, QueueWanted, Stats,
    WorkerView,
};
use tidegate_wire::{Query, Reply};

impl Engine {
    /// What waits, in the order in which it is looked at.
    pub async fn queue(&self, wanted: QueueWanted) -> Result<Queue, EngineError> {
        match self.query(Query::Queue(wanted), true).await? {
            Reply::Queue(queue) => Ok(*queue),
            _ => Err(EngineError::Unavailable),
        }
    }

    /// Limits, in the order of their keys.
    pub async fn limits(&self, wanted: LimitsWanted) -> Result<Vec<LimitView>, EngineError> {
        match self.query(Query::Limits(wanted), true).await? {
            Reply::Limits(limits) => Ok(limits),
            _ => Err(EngineError::Unavailable),
        }
    }

    /// One limit, with who has it and who waits for it.
    pub async fn limit(&self, key: LimitKey) -> Result<Option<LimitDetail>, EngineError> {
        match self.query(Query::Limit(key), true).await? {
            Reply::Limit(limit) => Ok(limit.map(|limit| *limit)),
            _ => Err(EngineError::Unavailable),
        }
    }

    /// Workers, and what each has.
    pub async fn workers(&self) -> Result<Vec<WorkerView>, EngineError> {
        match self.query(Query::Workers, true).await? {
            Reply::Workers(workers) => Ok(workers),
            _ => Err(EngineError::Unavailable),
        }
    }

    /// Flows or actions that were declared.
    pub async fn definitions(&self, kind: Kind) -> Result<Vec<DefinitionView>, EngineError> {
        match self.query(Query::Definitions(kind), true).await? {
            Reply::Definitions(definitions) => Ok(definitions),
            _ => Err(EngineError::Unavailable),
        }
    }

    /// Everything in numbers, if this server leads: otherwise whoever does tells them.
    pub async fn stats(&self) -> Result<Stats, EngineError> {
        match self.query(Query::Stats, false).await? {
            Reply::Stats(stats) => Ok(*stats),
            _ => Err(EngineError::Unavailable),
        }
    }

    /// One action or flow in numbers; nothing if there is none.
    pub async fn name_stats(&self, name: Name) -> Result<Option<NameStats>, EngineError> {
        match self.query(Query::NameStats(name), true).await? {
            Reply::NameStats(stats) => Ok(stats.map(|stats| *stats)),
            _ => Err(EngineError::Unavailable),
        }
    }
}
