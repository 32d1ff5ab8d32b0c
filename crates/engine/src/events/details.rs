//! What an event says besides its kind, its time and whom it is about: the fields that programs see.

use super::Happening;
use serde_json::{Map, Value as Json, json};
use tidegate_core::protocol::LimitValue;
use tidegate_core::time::Moment;

impl Happening {
    /// The fields of this kind of event, by their names; what is not known is left out.
    pub fn details(&self) -> Map<String, Json> {
        let fields = match self {
            Happening::RunQueued { name, priority, tags, due } => {
                let tags: Map<String, Json> =
                    tags.iter().map(|(tag, value)| (tag.to_string(), json!(value.as_str()))).collect();
                json!({ "name": name.as_str(), "priority": priority, "tags": tags, "due": due.map(time) })
            }
            Happening::RunStarted => json!({}),
            Happening::RunFinished { state, error } => json!({ "state": state.as_str(), "error": error }),
            Happening::TaskGranted { worker, epoch, attempt } => {
                json!({ "worker": worker.as_str(), "epoch": epoch.to_string(), "attempt": attempt })
            }
            Happening::TaskRetrying { at, reason } => json!({ "next": time(*at), "reason": reason }),
            Happening::TaskReturned { worker, epoch } | Happening::LeaseExpired { worker, epoch } => {
                json!({ "worker": worker.as_ref().map(|worker| worker.as_str()), "epoch": epoch.to_string() })
            }
            Happening::TaskFinished { state, error, count } => {
                json!({ "state": state.as_str(), "error": error, "count": (*count > 1).then_some(count) })
            }
            Happening::TaskReused { state, run } => {
                json!({ "state": state.as_str(), "from": run.to_string() })
            }
            Happening::LimitChanged { limit, to, by, until, paused } => json!({
                "limit": limit.to_string(),
                "to": to.as_ref().map(value),
                "by": by.as_ref().map(|by| by.as_str()),
                "until": until.map(time),
                "paused": paused,
            }),
            Happening::WorkerJoined { worker, slots } => {
                json!({ "worker": worker.as_str(), "process_slots": slots.process, "io_slots": slots.io })
            }
            Happening::WorkerDrained { worker } | Happening::WorkerLost { worker } => {
                json!({ "worker": worker.as_str() })
            }
        };
        let Json::Object(mut fields) = fields else { return Map::new() };
        fields.retain(|_, value| !value.is_null());
        fields
    }
}

fn time(at: Moment) -> String {
    at.timestamp().to_string()
}

fn value(value: &LimitValue) -> Json {
    match value {
        LimitValue::Units(units) => json!(units),
        LimitValue::Rate(rate) => json!(rate),
        LimitValue::Quota(quota) => json!(quota),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::ids::Epoch;
    use tidegate_core::state::State;

    #[test]
    fn what_is_not_known_is_left_out() {
        let epoch = Epoch { incarnation: 2, grant: 7 };
        let returned = Happening::TaskReturned { worker: None, epoch };
        assert_eq!(Json::Object(returned.details()), json!({ "epoch": "2.7" }));
        let finished = Happening::TaskFinished { state: State::Failed, error: Some("no".into()), count: 1 };
        assert_eq!(Json::Object(finished.details()), json!({ "state": "failed", "error": "no" }));
        let queued = Happening::RunQueued {
            name: "mail".into(),
            priority: -3,
            tags: vec![("team".into(), "a".into())],
            due: Some(Moment(1_500_000)),
        };
        let said = json!({ "name": "mail", "priority": -3, "tags": { "team": "a" }, "due": "1970-01-01T00:00:01.5Z" });
        assert_eq!(Json::Object(queued.details()), said);
    }
}
