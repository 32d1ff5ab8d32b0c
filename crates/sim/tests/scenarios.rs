//! Every rule as a story: a document, commands in plain words, and exactly what must happen after each.
//!
//! A file in `scenarios/` begins with what a user would write (flows, actions, limits, pools). After a line of equal
//! signs comes the script: a line that begins with `>` is a command, lines that begin with `|` below it are its body,
//! everything up to the next command is what must be said. `TIDEGATE_BLESS=1` writes down what is said instead of
//! comparing; read the difference before you commit it.

mod scenarios {
    pub mod commands;
    pub mod evaluate;
    pub mod limits;
    pub mod script;
    pub mod speech;
    pub mod words;
    pub mod workers;
    pub mod world;
}

use scenarios::script::Script;
use scenarios::world::World;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

#[test]
fn every_scenario_goes_as_it_is_told() {
    let bless = std::env::var_os("TIDEGATE_BLESS").is_some();
    let mut report = String::new();
    let files = files();
    assert!(!files.is_empty(), "no scenario was found");
    for file in &files {
        let text = fs::read_to_string(file).expect("a scenario is readable");
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let script = Script::read(&text);
        let played = script.and_then(|script| Ok((play(&name, &script)?, script)));
        let (said, mut script) = match played {
            Ok(played) => played,
            Err(error) => {
                report += &format!("\n{name}: {error}\n");
                continue;
            }
        };
        if bless {
            script.bless(said);
            fs::write(file, script.to_string()).expect("a scenario is writable");
        } else if let Some(difference) = script.difference(&said) {
            report += &format!("\n{name}{difference}");
        }
    }
    assert!(report.is_empty(), "some stories go otherwise:\n{report}");
}

/// What each command of a script leads to. A panic is told like any other difference, so that it hides no other file.
fn play(name: &str, script: &Script) -> Result<Vec<Vec<String>>, String> {
    let mut line = 0;
    let story = AssertUnwindSafe(|| {
        let mut world = World::new(name, script);
        let mut said = Vec::new();
        for command in script.commands() {
            line = command.line;
            said.push(world.carry_out(&command.words, &command.body)?);
        }
        Ok(said)
    });
    let told: Result<_, String> = catch_unwind(story).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map_or("it panics", String::as_str);
        Err(text.to_owned())
    });
    told.map_err(|error| format!("line {line}: {error}"))
}

fn files() -> Vec<PathBuf> {
    // Asked at run time: clones that share a build cache may share this program, but not their files.
    let sim = std::env::var("CARGO_MANIFEST_DIR").expect("cargo runs the tests");
    let entries = fs::read_dir(Path::new(&sim).join("scenarios")).expect("there are scenarios");
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut files: Vec<PathBuf> = paths.filter(|path| path.extension().is_some_and(|e| e == "txt")).collect();
    files.sort();
    files
}
