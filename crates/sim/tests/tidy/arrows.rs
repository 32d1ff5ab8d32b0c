//! Which crate may depend on which. The table in ARCHITECTURE.md is this one, in prose.

use std::collections::BTreeMap;

use toml::{Table, Value};

use super::check::{Check, Finding};
use super::tree::{Source, Tree};

/// Each room (a folder below `crates/`, or `xtask`) and the rooms it may depend on. Dependencies of tests
/// are free, because a test is no part of what ships.
const ROOMS: &[(&str, &[&str])] = &[
    ("core", &[]),
    ("flow", &["core"]),
    ("store", &["core"]),
    ("wire", &["core"]),
    ("engine", &["core", "store", "wire"]),
    ("worker", &["core", "flow", "wire"]),
    ("tidegate", &["core", "store", "engine", "worker", "flow"]),
    ("server", &["core", "flow", "store", "engine", "tidegate"]),
    ("remote", &["core", "worker"]),
    ("cli", &["core", "flow", "store", "wire", "engine", "worker", "server", "remote", "tidegate"]),
    ("sim", &["core", "store", "engine", "wire"]),
    ("observer", &[]),
    ("bench", &["core", "flow", "store", "engine", "worker", "tidegate", "observer", "sim"]),
    ("bench-peers/graphile", &[]),
    ("fuzz", &["core", "flow"]),
    ("xtask", &["core", "flow", "store", "wire", "engine", "worker", "server", "tidegate", "cli", "sim"]),
];

/// What the core may use from outside. No I/O, no clock, no randomness, no async can come in by these.
const CORE_MAY_USE: &[&str] = &["jiff", "rustc-hash", "serde", "slab", "thiserror"];

pub const ARROWS: Check = Check {
    rule: "arrows between our crates follow the table of rooms",
    find: find_arrows,
    bad: || {
        vec![
            sample("crates/flow", "[dependencies]\ntidegate-store.workspace = true"),
            sample("crates/core", "[dependencies.tidegate-flow]\npath = \"../flow\""),
            sample(
                "crates/flow",
                "[target.'cfg(unix)'.dependencies]\ntidegate-store = { path = \"../store\" }",
            ),
            sample("crates/flow", "[build-dependencies]\ntidegate-store.workspace = true"),
            sample(
                "crates/flow",
                "[dependencies]\nkeep = { package = \"tidegate-store\", path = \"../store\" }",
            ),
            sample("crates/flow", "[dependencies]\nsaved.workspace = true"),
            sample("crates/cli", "[dependencies]\ntidegate-sim.workspace = true"),
            sample("crates/attic", ""),
        ]
    },
    good: || {
        vec![
            sample("crates/store", "[dependencies]\ntidegate-core.workspace = true\nserde.workspace = true"),
            sample("crates/flow", "[dev-dependencies]\ntidegate-store.workspace = true"),
            sample("xtask", "[dependencies]\ntidegate-sim.workspace = true"),
        ]
    },
};

pub const CORE_STAYS_SMALL: Check = Check {
    rule: "the core is pure: it uses nothing but serde, thiserror, jiff and two small containers",
    find: find_core_dependencies,
    bad: || vec![sample("crates/core", "[dependencies]\ntokio.workspace = true")],
    good: || {
        vec![
            sample(
                "crates/core",
                "[dependencies]\njiff.workspace = true\n[dev-dependencies]\nproptest = \"1\"",
            ),
            sample("crates/store", "[dependencies]\nrusqlite.workspace = true"),
        ]
    },
};

/// A workspace with a few rooms, one of which has this much more in its manifest.
fn sample(folder: &str, more: &str) -> Tree {
    let root = "[workspace.dependencies]\nsaved = { package = \"tidegate-store\", path = \"crates/store\" }";
    let mut files = vec![("Cargo.toml".to_owned(), root.to_owned())];
    for other in ["crates/core", "crates/flow", "crates/store", "crates/sim", "crates/cli", folder] {
        let room = other.trim_start_matches("crates/");
        let more = if other == folder { more } else { "" };
        files.push((format!("{other}/Cargo.toml"), format!("[package]\nname = \"tidegate-{room}\"\n{more}")));
    }
    files.sort();
    files.dedup_by(|second, first| second.0 == first.0 && second.1.len() <= first.1.len());
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    Tree::sample(&files)
}

fn find_arrows(tree: &Tree) -> Vec<Finding> {
    let workspace = Workspace::read(tree);
    let mut findings = Vec::new();
    for room in &workspace.rooms {
        let Some((_, allowed)) = ROOMS.iter().find(|(name, _)| *name == room.name) else {
            findings.push(Finding::file(room.source, format!("no room is called {}", room.name)));
            continue;
        };
        for package in &workspace.dependencies(room) {
            let target = workspace.rooms.iter().find(|other| other.package == *package);
            if let Some(target) = target.filter(|target| !allowed.contains(&target.name)) {
                let says = format!("{} must not depend on {}", room.name, target.name);
                findings.push(Finding::file(room.source, says));
            }
        }
    }
    findings
}

fn find_core_dependencies(tree: &Tree) -> Vec<Finding> {
    let workspace = Workspace::read(tree);
    let Some(core) = workspace.rooms.iter().find(|room| room.name == "core") else { return Vec::new() };
    let strangers =
        workspace.dependencies(core).into_iter().filter(|name| !CORE_MAY_USE.contains(&name.as_str()));
    strangers.map(|name| Finding::file(core.source, format!("the core uses {name}"))).collect()
}

struct Workspace<'a> {
    /// Packages that the root manifest gives another name.
    renamed: BTreeMap<String, String>,
    rooms: Vec<Room<'a>>,
}

struct Room<'a> {
    name: &'a str,
    package: String,
    manifest: Table,
    source: &'a Source,
}

impl<'a> Workspace<'a> {
    fn read(tree: &'a Tree) -> Self {
        let mut renamed = BTreeMap::new();
        let mut rooms = Vec::new();
        for source in tree.all() {
            let Some(folder) = source.path.strip_suffix("Cargo.toml") else { continue };
            let manifest: Table =
                source.text.parse().unwrap_or_else(|error| panic!("{}: {error}", source.path));
            let shared = manifest.get("workspace").and_then(|workspace| workspace.get("dependencies"));
            for (name, value) in shared.and_then(Value::as_table).into_iter().flatten() {
                renamed.extend(package_of(value).map(|package| (name.clone(), package)));
            }
            let package = manifest.get("package").and_then(|package| package.get("name"));
            if let Some(package) = package.and_then(Value::as_str) {
                let name = folder.trim_start_matches("crates/").trim_end_matches('/');
                rooms.push(Room { name, package: package.to_owned(), manifest, source });
            }
        }
        Self { renamed, rooms }
    }

    /// Packages that ship with a room, or help to build it.
    fn dependencies(&self, room: &Room) -> Vec<String> {
        let platforms = room.manifest.get("target").and_then(Value::as_table).into_iter().flatten();
        let tables = platforms.filter_map(|(_, platform)| platform.as_table()).chain([&room.manifest]);
        let sections = tables.flat_map(|table| [table.get("dependencies"), table.get("build-dependencies")]);
        let entries = sections.flatten().filter_map(Value::as_table).flatten();
        entries.map(|(name, value)| self.package(name, value)).collect()
    }

    fn package(&self, name: &str, value: &Value) -> String {
        package_of(value).or_else(|| self.renamed.get(name).cloned()).unwrap_or_else(|| name.to_owned())
    }
}

fn package_of(value: &Value) -> Option<String> {
    value.get("package").and_then(Value::as_str).map(str::to_owned)
}
