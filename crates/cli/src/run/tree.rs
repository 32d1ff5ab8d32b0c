//! Draws a [`View`] as a tree of steps: a pure function from what is known to lines of text.

use super::event::{reused, state_of, tone, try_of};
use super::view::{Items, Job, Reused, Run, Step, View};
use crate::line::{Line, Tone};
use crate::time::took;
use tidegate_core::ids::NodeId;
use tidegate_core::model::Step as Definition;
use tidegate_core::state::State;
use tidegate_core::time::Moment;

const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// Cells of an item progress bar.
const BAR: u32 = 16;
/// Names longer than this do not push the columns of the others away.
const NAME: usize = 32;
/// Lines of output shown under one running step, and under all of them.
const LOG_OF_STEP: usize = 2;
const LOG_OF_ALL: usize = 8;

/// How to draw: how much room there is, and what time it is.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    pub now: Moment,
    pub width: usize,
    pub height: usize,
    /// Turns the spinner.
    pub turn: usize,
    /// The run is under way; otherwise this is what stays on the screen.
    pub live: bool,
}

/// One line of the tree; if room is short, lines that matter less give way first.
struct Row {
    line: Line,
    weight: Weight,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Weight {
    Log,
    Ended,
    Pending,
    Open,
}

/// The tree, without colours if the caller does not want them; every line fits into the width.
pub fn draw(view: &View, id: &str, frame: &Frame) -> Vec<Line> {
    let mut tree = Tree { view, frame, column: 0, logs: LOG_OF_ALL, rows: Vec::new() };
    tree.column = tree.widest(view.root, 1).min(NAME) + 4;
    let header = match (&view.job, view.root_run()) {
        (Some(job), _) => tree.job_header(job, id),
        (None, Some(run)) => header(run, id, frame),
        (None, None) => return Vec::new(),
    };
    tree.rows.push(Row { line: header, weight: Weight::Open });
    if let Some(outage) = &view.outage {
        let line = Line::new().with(Tone::Bad, format!("  ! {outage}"));
        tree.rows.push(Row { line, weight: Weight::Open });
    }
    match (&view.job, view.root_run()) {
        (Some(job), _) => tree.log(&job.step, 0),
        (None, Some(run)) => tree.steps(run, 1),
        (None, None) => {}
    }
    fit(tree.rows, frame).into_iter().map(|line| line.clip(frame.width)).collect()
}

fn title(state: State, name: &str, id: &str, frame: &Frame) -> Line {
    let line = Line::new().with(tone(state), sign(Some(state), frame)).with(Tone::Plain, " ");
    let line = line.with(Tone::Strong, name).with(Tone::Plain, "  ");
    line.with(Tone::Dim, id).with(Tone::Plain, "  ")
}

fn header(run: &Run, id: &str, frame: &Frame) -> Line {
    let line = title(run.state, run.flow.name.as_str(), id, frame);
    let span = run.started.map(|started| took(run.ended.unwrap_or(frame.now).since(started)));
    let span = span.unwrap_or_default();
    match (&run.waits, run.state, run.stopping) {
        (_, state, _) if state.is_end() => line.with(tone(state), format!("{} in {span}", state_of(state))),
        (Some(waits), _, _) => line.with(Tone::Waits, waits),
        (_, _, Some(_)) => line.with(Tone::Plain, span).with(Tone::Waits, "  is being stopped"),
        _ => line.with(Tone::Plain, span),
    }
}

/// Leaves out what matters least until the rest fits, and says how much that was.
fn fit(mut rows: Vec<Row>, frame: &Frame) -> Vec<Line> {
    // The cursor stands on a line of its own below.
    let room = frame.height.saturating_sub(1).max(2);
    if !frame.live || rows.len() <= room {
        return rows.into_iter().map(|row| row.line).collect();
    }
    rows.retain(|row| row.weight != Weight::Log);
    let (mut ended, mut others) = (0, 0);
    while rows.len() > room.saturating_sub(usize::from(ended + others > 0)) {
        let Some(least) = rows.iter().skip(1).map(|row| row.weight).min() else { break };
        // Of what is done the oldest goes first, of what is to come the latest.
        let at = match least {
            Weight::Ended => rows.iter().position(|row| row.weight == least),
            _ => rows.iter().rposition(|row| row.weight == least),
        };
        let Some(at) = at else { break };
        rows.remove(at);
        if least == Weight::Ended { ended += 1 } else { others += 1 }
    }
    let mut lines: Vec<Line> = rows.into_iter().map(|row| row.line).collect();
    if ended + others > 0 {
        lines.push(Line::new().with(Tone::Dim, format!("  … {}", left_out(ended, others))));
    }
    lines
}

fn left_out(ended: usize, others: usize) -> String {
    let what = match (ended, others) {
        (ended, 0) => format!("{ended} done"),
        (0, others) => format!("{others} other"),
        (ended, others) => format!("{ended} done and {others} other"),
    };
    match ended + others {
        1 => format!("{what} step is not shown"),
        _ => format!("{what} steps are not shown"),
    }
}

struct Tree<'a> {
    view: &'a View,
    frame: &'a Frame,
    /// Where durations begin.
    column: usize,
    /// Lines of output that may still be shown.
    logs: usize,
    rows: Vec<Row>,
}

impl Tree<'_> {
    /// Of a job there is no more than this, and what it wrote.
    fn job_header(&self, job: &Job, id: &str) -> Line {
        let step = &job.step;
        let state = step.state.unwrap_or(State::Waiting);
        let line = title(state, job.action.as_str(), id, self.frame);
        let span = self.elapsed(step);
        match state {
            State::Waiting => {
                line.with(Tone::Waits, step.waits.clone().unwrap_or_else(|| "waits".to_owned()))
            }
            State::Scheduled => line.with(Tone::Waits, self.scheduled(step, job.attempts)),
            State::Running => {
                let line = line.with(Tone::Plain, span).with(Tone::Plain, "  ");
                self.running(step, job.attempts)
                    .into_iter()
                    .fold(line, |line, (tone, text)| line.with(tone, text))
            }
            state if step.tries > 1 => {
                let text = format!("{} in {span}, {} tries", state_of(state), step.tries);
                line.with(tone(state), text)
            }
            state => line.with(tone(state), format!("{} in {span}", state_of(state))),
        }
    }

    /// The widest name with its indent.
    fn widest(&self, run: NodeId, depth: usize) -> usize {
        let Some(run) = self.view.runs.get(&run) else { return 0 };
        let widths = run.flow.steps.iter().zip(&run.steps).map(|(definition, step)| {
            let deeper = depth + if step.items.is_some() { 2 } else { 1 };
            let inside = step.runs_inside().map(|inside| self.widest(inside, deeper)).max().unwrap_or(0);
            (definition.name.as_str().chars().count() + 2 * depth).max(inside)
        });
        widths.max().unwrap_or(0)
    }

    fn steps(&mut self, run: &Run, depth: usize) {
        for (definition, step) in run.flow.steps.iter().zip(&run.steps) {
            self.step(run, definition, step, depth);
            if let Some(inside) = step.inside.and_then(|inside| self.view.runs.get(&inside)) {
                self.steps(inside, depth + 1);
            }
            for (index, inside) in step.items.iter().flat_map(|items| &items.inside) {
                self.item(*index, *inside, depth + 1);
            }
        }
    }

    /// An item with a flow inside it.
    fn item(&mut self, index: u32, inside: NodeId, depth: usize) {
        let Some(run) = self.view.runs.get(&inside) else { return };
        let span = run.started.map(|started| took(self.frame.now.since(started))).unwrap_or_default();
        let mut line = Line::new()
            .with(Tone::Plain, "  ".repeat(depth))
            .with(tone(run.state), sign(Some(run.state), self.frame))
            .with(Tone::Plain, format!(" #{index}"))
            .pad(self.column)
            .with(Tone::Dim, format!("{span:>7}"));
        if run.stopping.is_some() {
            line = line.with(Tone::Waits, "  is being stopped");
        }
        self.rows.push(Row { line, weight: Weight::Open });
        self.steps(run, depth + 1);
    }

    fn step(&mut self, run: &Run, definition: &Definition, step: &Step, depth: usize) {
        let state = step.state;
        let over = run.state.is_end();
        let color = state.map_or(Tone::Dim, tone);
        let sign = if state.is_none() && over { "–" } else { sign(state, self.frame) };
        let name_tone =
            if state.is_none_or(|state| tone(state) == Tone::Dim) { Tone::Dim } else { Tone::Plain };
        let mut line = Line::new()
            .with(Tone::Plain, "  ".repeat(depth))
            .with(color, sign)
            .with(Tone::Plain, " ")
            .with(name_tone, definition.name.as_str())
            .pad(self.column);
        line = line.with(Tone::Dim, format!("{:>7}", self.elapsed(step))).with(Tone::Plain, "  ");
        for (tone, text) in self.details(run, definition, step) {
            line = line.with(tone, text);
        }
        let weight = match state {
            Some(state) if !state.is_end() || tone(state) == Tone::Bad => Weight::Open,
            Some(_) => Weight::Ended,
            None => Weight::Pending,
        };
        self.rows.push(Row { line, weight });
        self.next_item(step, depth);
        self.log(step, depth);
    }

    fn elapsed(&self, step: &Step) -> String {
        let Some(started) = step.started else { return String::new() };
        let runs = step.state == Some(State::Running);
        let until = step.ended.or(runs.then_some(self.frame.now));
        until.map(|until| took(until.since(started))).unwrap_or_default()
    }

    fn details(&self, run: &Run, definition: &Definition, step: &Step) -> Vec<(Tone, String)> {
        let of = self.view.attempts_of(definition);
        match step.state {
            None if run.state.is_end() => vec![(Tone::Dim, "not started".to_owned())],
            None => {
                let open = definition
                    .after
                    .iter()
                    .filter(|&&before| run.steps[before as usize].state.is_none_or(|state| !state.is_end()));
                let names: Vec<&str> =
                    open.map(|&before| run.flow.steps[before as usize].name.as_str()).collect();
                if names.is_empty() {
                    return Vec::new();
                }
                vec![(Tone::Dim, format!("after {}", names.join(", ")))]
            }
            Some(State::Waiting) => {
                vec![(Tone::Waits, step.waits.clone().unwrap_or_else(|| "waits".to_owned()))]
            }
            Some(State::Scheduled) => vec![(Tone::Waits, self.scheduled(step, of))],
            Some(State::Running) => self.running(step, of),
            Some(state) => self.ended(step, state),
        }
    }

    fn scheduled(&self, step: &Step, of: u32) -> String {
        let left = took(step.due.unwrap_or(self.frame.now).since(self.frame.now));
        match &step.error {
            Some(error) if step.failures > 0 => format!("{} in {left}: {error}", try_of(step.tries + 1, of)),
            _ => format!("waits another {left}"),
        }
    }

    fn running(&self, step: &Step, of: u32) -> Vec<(Tone, String)> {
        let mut parts = Vec::new();
        match &step.items {
            Some(items) => parts.extend(bar(items)),
            None if step.tries > 1 => parts.push((Tone::Waits, try_of(step.tries, of))),
            None => {}
        }
        if step.stopping {
            parts.push((Tone::Waits, "  is being stopped".to_owned()));
        }
        parts
    }

    fn ended(&self, step: &Step, state: State) -> Vec<(Tone, String)> {
        if let Some(Reused { run, is_gone }) = step.reused {
            let gone = if is_gone { ", whose output is gone" } else { "" };
            return vec![(Tone::Dim, format!("{}{gone}", reused(state, run)))];
        }
        // Who was cancelled is not to blame, whatever it says.
        let error = step.error.as_deref().filter(|_| state != State::Cancelled);
        let mut parts = match (state, error) {
            (State::Succeeded, _) => Vec::new(),
            // Its sign says already that it failed.
            (State::Failed, Some(error)) => vec![(Tone::Bad, error.to_owned())],
            (state, Some(error)) => vec![(tone(state), format!("{}: {error}", state_of(state)))],
            (state, None) => vec![(tone(state), state_of(state))],
        };
        match &step.items {
            Some(items) if state == State::Succeeded => {
                parts.push((Tone::Dim, format!("{} of {} items", items.succeeded, items.count)));
            }
            Some(_) => {}
            None if step.tries > 1 && parts.is_empty() => {
                parts.push((Tone::Dim, format!("{} tries", step.tries)))
            }
            None if step.tries > 1 => parts.push((Tone::Dim, format!(", {} tries", step.tries))),
            None => {}
        }
        let items = step.items.as_ref().filter(|_| state != State::Cancelled);
        if let Some((index, error)) = items.and_then(|items| items.error.as_ref()) {
            parts.push((Tone::Bad, format!("; #{index}: {error}")));
        }
        parts
    }

    /// What the next item of a loop waits for.
    fn next_item(&mut self, step: &Step, depth: usize) {
        let (Some(State::Running), Some(items), Some(waits)) = (step.state, &step.items, &step.waits) else {
            return;
        };
        let Some(next) = items.waiting.first() else { return };
        let text = format!("{}◌ #{next} {waits}", "  ".repeat(depth + 1));
        self.rows.push(Row { line: Line::new().with(Tone::Waits, text), weight: Weight::Log });
    }

    /// The end of what a running step wrote; of one that failed too, once all is over.
    fn log(&mut self, step: &Step, depth: usize) {
        let shown = match step.state {
            Some(State::Running) if self.frame.live => LOG_OF_STEP.min(self.logs),
            Some(State::Failed | State::TimedOut) if !self.frame.live => step.log.len(),
            _ => 0,
        };
        self.logs -= if self.frame.live { shown.min(step.log.len()) } else { 0 };
        for text in step.log.iter().skip(step.log.len().saturating_sub(shown)) {
            let indent = "  ".repeat(depth + 1);
            let line = Line::new().with(Tone::Dim, format!("{indent}│ {text}"));
            self.rows.push(Row { line, weight: Weight::Log });
        }
    }
}

/// A bar of items, and the numbers.
fn bar(items: &Items) -> Vec<(Tone, String)> {
    let cells = |n: u32| (u64::from(n) * u64::from(BAR) / u64::from(items.count.max(1))) as usize;
    let running = items.running.len() as u32;
    let done = cells(items.succeeded);
    let bad = cells(items.succeeded + items.failed) - done;
    let busy = cells(items.ended() + running).saturating_sub(done + bad);
    let rest = (BAR as usize).saturating_sub(done + bad + busy);
    let mut parts = vec![
        (Tone::Good, "━".repeat(done)),
        (Tone::Bad, "━".repeat(bad)),
        (Tone::Busy, "╍".repeat(busy)),
        (Tone::Dim, "─".repeat(rest)),
        (Tone::Plain, format!("  {} of {}", items.ended(), items.count)),
    ];
    if running > 0 {
        parts.push((Tone::Busy, format!(", {running} running")));
    }
    if items.failed > 0 {
        parts.push((Tone::Bad, format!(", {} failed", items.failed)));
    }
    if !items.retrying.is_empty() {
        parts.push((Tone::Waits, format!(", {} to be tried again", items.retrying.len())));
    }
    parts
}

fn sign(state: Option<State>, frame: &Frame) -> &'static str {
    match state {
        None => "·",
        Some(State::Waiting | State::Scheduled) => "◌",
        Some(State::Running) if frame.live => SPINNER[frame.turn % SPINNER.len()],
        Some(State::Running) => "◌",
        Some(State::Succeeded) => "✓",
        Some(State::Failed | State::TimedOut | State::Expired | State::Refused) => "✗",
        Some(State::Cancelled | State::Skipped | State::Replaced) => "–",
    }
}

#[cfg(test)]
mod tests {
    use super::left_out;

    #[test]
    fn nobody_is_told_that_nothing_is_left_out() {
        assert_eq!(left_out(3, 0), "3 done steps are not shown");
        assert_eq!(left_out(0, 1), "1 other step is not shown");
        assert_eq!(left_out(2, 3), "2 done and 3 other steps are not shown");
    }
}
