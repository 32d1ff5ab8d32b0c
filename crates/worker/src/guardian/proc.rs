//! What `/proc` says about processes.
//!
//! A number may pass to another process between two questions, so an answer alone is no reason to send a signal:
//! see [`super::tree`].

use rustix::process::Pid;
use std::collections::HashMap;
use std::fs;
use std::path::Path;

pub(super) struct Stat {
    pub(super) parent: Option<Pid>,
    pub(super) group: Option<Pid>,
}

pub(super) fn stat(pid: Pid) -> Option<Stat> {
    parse_stat(&fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// The name comes second, in parentheses, and may itself hold parentheses and spaces.
fn parse_stat(text: &[u8]) -> Option<Stat> {
    let after_name = text.iter().rposition(|&byte| byte == b')')? + 1;
    let rest = std::str::from_utf8(&text[after_name..]).ok()?;
    let mut numbers = rest.split_ascii_whitespace().skip(1).map(str::parse);
    let mut next = || numbers.next()?.ok();
    Some(Stat { parent: Pid::from_raw(next()?), group: Pid::from_raw(next()?) })
}

/// A variable of the environment the process was started with, unless it has written over it.
pub(super) fn variable(pid: Pid, name: &str) -> Option<String> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let value = environment
        .split(|&byte| byte == 0)
        .find_map(|entry| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"="))?;
    String::from_utf8(value.to_vec()).ok()
}

pub(super) fn everybody() -> Vec<Pid> {
    numbers_in(Path::new("/proc"))
}

/// Whether this `/proc` is there and counts processes as this process does.
pub(super) fn is_usable() -> bool {
    fs::read_link("/proc/self").is_ok_and(|own| own == Path::new(&std::process::id().to_string()))
}

/// Who is whose child.
pub(super) enum Kinship {
    /// The kernel lists the children of a process.
    Listed,
    /// It does not, so everybody was asked for their parent.
    Scanned(HashMap<Pid, Vec<Pid>>),
}

impl Kinship {
    pub(super) fn look() -> Kinship {
        if Path::new("/proc/thread-self/children").exists() { Kinship::Listed } else { Kinship::scan() }
    }

    fn scan() -> Kinship {
        let mut children: HashMap<Pid, Vec<Pid>> = HashMap::new();
        for pid in everybody() {
            if let Some(Stat { parent: Some(parent), .. }) = stat(pid) {
                children.entry(parent).or_default().push(pid);
            }
        }
        Kinship::Scanned(children)
    }

    pub(super) fn children(&self, pid: Pid) -> Vec<Pid> {
        match self {
            Kinship::Listed => listed_children(pid),
            Kinship::Scanned(children) => children.get(&pid).cloned().unwrap_or_default(),
        }
    }
}

/// Each thread has children of its own.
fn listed_children(pid: Pid) -> Vec<Pid> {
    let tasks = format!("/proc/{pid}/task");
    numbers_in(Path::new(&tasks))
        .into_iter()
        .filter_map(|thread| fs::read_to_string(format!("{tasks}/{thread}/children")).ok())
        .flat_map(|list| list.split_ascii_whitespace().filter_map(parse_pid).collect::<Vec<_>>())
        .collect()
}

fn numbers_in(directory: &Path) -> Vec<Pid> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    entries.filter_map(|entry| parse_pid(entry.ok()?.file_name().to_str()?)).collect()
}

fn parse_pid(text: &str) -> Option<Pid> {
    Pid::from_raw(text.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{getpgrp, getpid, getppid};
    use std::process::{Child, Command};

    struct Ended(Child);

    impl Drop for Ended {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn a_name_with_parentheses_and_spaces_does_not_confuse() {
        let stat = parse_stat(b"12 (a) b (c) S 34 56 78 0").unwrap();
        assert_eq!((stat.parent, stat.group), (Pid::from_raw(34), Pid::from_raw(56)));
        assert!(parse_stat(b"12 (a").is_none() && parse_stat(b"12 (a) S").is_none());
    }

    #[test]
    fn this_process_is_described_as_it_is() {
        assert!(is_usable());
        let own = stat(getpid()).unwrap();
        assert_eq!((own.parent, own.group), (getppid(), Some(getpgrp())));
        assert_eq!(variable(getpid(), "CARGO"), std::env::var("CARGO").ok());
        assert_eq!(variable(getpid(), "CARG"), None);
    }

    #[test]
    fn children_are_found_with_and_without_the_kernels_list() {
        let child = Ended(Command::new("sleep").arg("1000").spawn().unwrap());
        for kinship in [Kinship::look(), Kinship::scan()] {
            assert!(kinship.children(getpid()).contains(&Pid::from_child(&child.0)));
        }
    }
}
