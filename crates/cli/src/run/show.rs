//! The ways to tell what happens: a picture on a terminal, lines elsewhere, or nothing.

use super::event::{Event, What};
use super::screen::Screen;
use super::tree::{Frame, draw};
use super::view::View;
use crate::out::say;
use crate::time::now;
use jiff::tz::TimeZone;
use std::time::Duration;
use tidegate_core::ids::RunId;
use tidegate_core::model::{Flow, Work};

pub enum Show {
    Picture {
        screen: Screen,
        id: RunId,
        turn: usize,
    },
    Lines {
        id: RunId,
        /// Of the column of names.
        width: usize,
        zone: TimeZone,
    },
    Nothing,
}

impl Show {
    /// `width` is that of the column of names.
    pub fn choose(quiet: bool, name: &str, width: usize, id: RunId) -> Show {
        if quiet {
            return Show::Nothing;
        }
        if let Some(screen) = Screen::open() {
            return Show::Picture { screen, id, turn: 0 };
        }
        say(format!("{name} {id}"));
        Show::Lines { id, width, zone: TimeZone::system() }
    }

    /// How often [`Show::refresh`] is to be called.
    pub fn pace(&self) -> Duration {
        match self {
            Show::Picture { .. } => Duration::from_millis(100),
            Show::Lines { .. } | Show::Nothing => Duration::from_millis(250),
        }
    }

    /// Whether it matters what tasks wait for.
    pub fn asks(&self) -> bool {
        !matches!(self, Show::Nothing)
    }

    pub fn tell(&self, event: &Event) {
        match (self, &event.what) {
            (Show::Lines { width, zone, .. }, _) => say(event.line(*width, zone)),
            // Who wants no news still wants to know why nothing happens.
            (Show::Nothing, What::Outage(text)) => say(text),
            (Show::Picture { .. } | Show::Nothing, _) => {}
        }
    }

    pub fn refresh(&mut self, view: &View) {
        if let Show::Picture { screen, id, turn } = self {
            let (width, height) = Screen::size();
            *turn += 1;
            let frame = Frame { now: now(), width, height, turn: *turn, live: true };
            screen.paint(&draw(view, &id.to_string(), &frame));
        }
    }

    /// What stays: the whole tree.
    pub fn finish(self, view: &View) {
        let frame = |width| Frame { now: now(), width, height: 0, turn: 0, live: false };
        match self {
            Show::Picture { mut screen, id, .. } => {
                let (width, _) = Screen::size();
                screen.paint(&draw(view, &id.to_string(), &frame(width)));
            }
            Show::Lines { id, .. } => {
                draw(view, &id.to_string(), &frame(usize::MAX)).iter().for_each(say);
            }
            Show::Nothing => {}
        }
    }
}

/// Room for the names of a flow's steps, and of their items.
pub fn widest(flow: &Flow) -> usize {
    let names = flow.steps.iter().map(|step| {
        let more = match (&step.each, &step.work) {
            (Some(_), Work::Flow { .. }) => 12,
            (Some(_), _) => 3,
            (None, Work::Flow { .. }) => 9,
            _ => 0,
        };
        step.name.as_str().chars().count() + more
    });
    names.chain([flow.name.as_str().chars().count()]).max().unwrap_or(0).min(24)
}

/// What is told when the reason changes.
pub fn waits(view: &View, task: tidegate_core::ids::TaskId, why: &str) -> Option<Event> {
    Some(Event { at: now(), name: view.name(task)?, what: What::Waits(why.to_owned()) })
}
