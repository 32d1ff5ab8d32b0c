//! What every write of a core obeys, whatever it is about: its row is there, and the move is legal.

use std::collections::BTreeMap;
use tidegate_core::ids::TaskId;
use tidegate_core::protocol::Write;
use tidegate_core::state::State;

#[derive(Default)]
pub struct Laws {
    states: BTreeMap<TaskId, State>,
}

impl Laws {
    pub fn check(&mut self, write: &Write) {
        match write {
            Write::NodeAdded(row) => {
                let life = &row.life;
                assert_eq!(life.ended.is_some(), life.state.is_end(), "{write:?}");
                self.add(TaskId::node(row.node), life.state);
            }
            Write::ItemsAdded { step, from, items, .. } => {
                (*from..)
                    .zip(items)
                    .for_each(|(index, _)| self.add(TaskId::item(*step, index), State::Waiting));
            }
            Write::Entered { node, state: State::Waiting, .. } => {
                // A step that waited for room in its run waits on, for a worker.
                let state = self.states.insert(TaskId::node(*node), State::Waiting);
                assert!(matches!(state, Some(State::Waiting | State::Scheduled)), "{write:?} {state:?}");
            }
            Write::Entered { node, state, .. } => self.turn(TaskId::node(*node), *state),
            Write::Granted { task, .. } => self.turn(*task, State::Running),
            Write::ItemEntered { step, index, .. } => self.turn(TaskId::item(*step, *index), State::Running),
            Write::Moved { task, state, .. } | Write::Ended { task, state, .. } => self.turn(*task, *state),
            Write::ItemsEnded { step, from, to, state, .. } => {
                assert!(from < to, "{write:?}");
                (*from..*to).for_each(|index| self.turn(TaskId::item(*step, index), *state));
            }
            Write::Stopping { task, .. } => {
                let state = self.states.get(task);
                assert_eq!(state, Some(&State::Running), "{write:?}");
            }
            Write::Ranked { node, .. } | Write::Paused { node, .. } => {
                let state = self.states.get(&TaskId::node(*node));
                assert!(state.is_some_and(|state| !state.is_end()), "{write:?} {state:?}");
            }
            Write::Renewed { leases, .. } => {
                for lease in leases {
                    assert_eq!(self.states.get(&lease.task), Some(&State::Running), "{lease:?}");
                }
            }
            Write::LimitSet(_)
            | Write::PaceTaken { .. }
            | Write::Declared(_)
            | Write::WorkerJoined(_)
            | Write::WorkerGone { .. }
            | Write::TokenSet(_)
            | Write::TokenGone { .. }
            | Write::Audited(_) => {}
        }
    }

    fn add(&mut self, task: TaskId, state: State) {
        assert_eq!(self.states.insert(task, state), None, "{task:?} was there already");
    }

    fn turn(&mut self, task: TaskId, next: State) {
        let before = self.states.insert(task, next).unwrap_or_else(|| panic!("{task:?} has no row"));
        assert!(before.may_become(next), "{task:?} became {next} and was {before}");
    }
}
