//! `after`: which steps wait for which, and that no step waits for itself.

use super::context::Context;
use crate::problem::{Problem, quoted};
use crate::yaml::{Entry, Node, Value};
use std::collections::HashMap;

/// Steps of a circle that its error names; of a longer one, the first and the last.
const MAX_NAMED: usize = 12;

/// The steps of a flow and what each waits for, by index.
pub(super) struct Graph {
    pub indexes: HashMap<String, usize>,
    pub after: Vec<Vec<u32>>,
}

pub(super) fn indexes(steps: &[Entry]) -> HashMap<String, usize> {
    steps.iter().enumerate().map(|(index, step)| (step.key.clone(), index)).collect()
}

pub(super) fn compile(cx: &mut Context<'_>, steps: &[Entry]) -> Graph {
    let indexes = indexes(steps);
    let after: Vec<Vec<u32>> = steps.iter().map(|step| predecessors(cx, step, &indexes)).collect();
    for circle in circles(&after) {
        let mut path: Vec<String> = circle.iter().map(|&index| quoted(&steps[index].key)).collect();
        path.extend(path.first().cloned());
        if path.len() > MAX_NAMED {
            path.splice(MAX_NAMED / 2..path.len() - MAX_NAMED / 2, ["…".to_owned()]);
        }
        let first = &steps[circle[0]];
        let span = after_of(first).map_or(first.key_span, |entry| entry.node.span);
        cx.report(span, Problem::Cycle { path });
    }
    Graph { indexes, after }
}

impl Graph {
    /// For each step, whether it has ended before the one at `index` starts.
    pub fn ended_before(&self, index: usize) -> Vec<bool> {
        let mut ended = vec![false; self.after.len()];
        let mut open = self.after[index].clone();
        while let Some(step) = open.pop() {
            let step = step as usize;
            if !std::mem::replace(&mut ended[step], true) {
                open.extend(&self.after[step]);
            }
        }
        ended
    }
}

fn after_of(step: &Entry) -> Option<&Entry> {
    step.node.entries().iter().find(|entry| entry.key == "after")
}

fn predecessors(cx: &mut Context<'_>, step: &Entry, indexes: &HashMap<String, usize>) -> Vec<u32> {
    let Some(entry) = after_of(step) else { return Vec::new() };
    let names: &[Node] = match &entry.node.value {
        Value::List(names) => names,
        Value::Scalar { .. } if entry.node.text().is_some() => std::slice::from_ref(&entry.node),
        _ => {
            cx.wrong_type(&entry.node, "after", "a list of steps", None);
            return Vec::new();
        }
    };
    let mut after = Vec::new();
    for node in names {
        let Some(name) = cx.text(node, "after") else { continue };
        match indexes.get(name) {
            Some(&index) => after.push(index as u32),
            None => {
                let meant = cx.nearest(name, indexes.keys().map(String::as_str));
                cx.report(node.span, Problem::UnknownStep { step: quoted(name), meant });
            }
        }
    }
    after.sort_unstable();
    after.dedup();
    after
}

/// Circles that have no step in common: in each, every step waits for the next, and the last for the first.
///
/// Without recursion, because a chain may be as long as the file allows.
fn circles(after: &[Vec<u32>]) -> Vec<Vec<usize>> {
    #[derive(Clone, Copy, PartialEq)]
    enum Seen {
        No,
        Open,
        Done,
    }
    let mut seen = vec![Seen::No; after.len()];
    let mut in_circle = vec![false; after.len()];
    let mut circles = Vec::new();
    for root in 0..after.len() {
        if seen[root] != Seen::No {
            continue;
        }
        // Each step on the way, and how many of its predecessors were followed.
        let mut path = vec![(root, 0usize)];
        seen[root] = Seen::Open;
        while let Some((step, followed)) = path.last_mut() {
            let Some(&next) = after[*step].get(*followed) else {
                seen[*step] = Seen::Done;
                path.pop();
                continue;
            };
            *followed += 1;
            let next = next as usize;
            match seen[next] {
                Seen::Done => {}
                Seen::No => {
                    seen[next] = Seen::Open;
                    path.push((next, 0));
                }
                Seen::Open => {
                    let start = path.iter().position(|&(step, _)| step == next).unwrap_or(0);
                    let circle: Vec<usize> = path[start..].iter().map(|&(step, _)| step).collect();
                    // One error a knot is enough: mending it often unties the rest.
                    if !circle.iter().any(|&step| in_circle[step]) {
                        circle.iter().for_each(|&step| in_circle[step] = true);
                        circles.push(circle);
                    }
                }
            }
        }
    }
    circles
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_every_knot_once() {
        assert!(circles(&[vec![], vec![0], vec![0, 1]]).is_empty());
        assert_eq!(circles(&[vec![0]]), [[0]]);
        assert_eq!(circles(&[vec![], vec![0, 3], vec![1], vec![2]]), [[1, 3, 2]]);
        assert_eq!(circles(&[vec![1], vec![0], vec![3], vec![2]]), [[0, 1], [2, 3]]);
        assert_eq!(circles(&[vec![1, 2], vec![0], vec![0]]), [[0, 1]], "two circles, one knot");
        let long: Vec<Vec<u32>> = (0..50_000u32).map(|step| vec![(step + 1) % 50_000]).collect();
        assert_eq!(circles(&long)[0].len(), 50_000, "no stack to overflow");
    }
}
