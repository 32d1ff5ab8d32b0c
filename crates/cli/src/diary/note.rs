//! One line of a diary.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};
use tidegate::Event;
use tidegate_core::ids::{Epoch, TaskId};
use tidegate_core::time::Moment;
use tidegate_worker::{LogLine, Stream};

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Note {
    pub at: Moment,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    #[serde(flatten)]
    pub what: What,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// A process wrote a line, or a piece of one.
    Wrote {
        /// Tells attempts apart.
        epoch: Epoch,
        stderr: bool,
        text: String,
        /// False if the line goes on in the next piece.
        newline: bool,
    },
    Happened {
        /// Its position.
        id: String,
        event: String,
        #[serde(flatten)]
        more: Map<String, Json>,
    },
    /// So many notes before this one are missing.
    Missed(u64),
    /// The diary is as large as it may be.
    Full {},
}

impl From<LogLine> for Note {
    fn from(line: LogLine) -> Note {
        let LogLine { lease, at, stream, text, newline, .. } = line;
        let stderr = stream == Stream::Stderr;
        Note { at, task: Some(lease.task), what: What::Wrote { epoch: lease.epoch, stderr, text, newline } }
    }
}

impl From<&Event> for Note {
    fn from(event: &Event) -> Note {
        let what = What::Happened {
            id: event.position.to_string(),
            event: event.what.kind().to_owned(),
            more: event.what.details(),
        };
        Note { at: event.at, task: event.task, what }
    }
}
