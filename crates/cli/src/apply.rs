//! `tidegate apply`: what stands in files becomes what a server has declared.

use crate::args;
use crate::failure::{Exit, Failure};
use crate::files::{Source, expand, name_of, pack_of};
use crate::out::{print, say};
use crate::server::{connect, failed};
use serde::Deserialize;
use serde_json::{Value as Json, json};

#[derive(Deserialize)]
struct Applied {
    flows: Vec<Difference>,
    actions: Vec<Difference>,
    limits: bool,
}

#[derive(Deserialize)]
struct Difference {
    name: String,
    change: String,
}

pub async fn apply(options: &args::Apply, quiet: bool) -> Result<Exit, Failure> {
    let client = connect(&options.server)?;
    let mut files = Vec::new();
    for path in expand(&options.directory)? {
        let source = Source::read(&path)?;
        let name = path.strip_prefix(&options.directory).map_or_else(|_| name_of(&path), name_of);
        let text = String::from_utf8(source.bytes).map_err(|_| {
            Failure::new("not-utf8", "the file is not UTF-8 text").at(path.display()).exit(Exit::Invalid)
        })?;
        files.push(json!({ "name": name, "text": text, "pack": pack_of(&path) }));
    }
    if files.is_empty() {
        let failure = Failure::new("no-files", "the directory holds no .yaml file");
        return Err(failure.at(options.directory.display()).exit(Exit::Invalid));
    }
    let body: Json = json!({ "files": files, "dry_run": options.dry_run });
    let applied: Applied = client.put("/api/v1/definitions", &body).await.map_err(|error| failed(&error))?;
    let mut changes = 0;
    for (kind, differences) in [("flow", &applied.flows), ("action", &applied.actions)] {
        for Difference { name, change } in differences.iter().filter(|difference| difference.change != "same")
        {
            changes += 1;
            print(format!("{change:<8} {kind} {name}"))?;
        }
    }
    if !quiet {
        let same = applied.flows.len() + applied.actions.len() - changes;
        let limits = if applied.limits { ", and limits as the files say" } else { "" };
        let verb = if options.dry_run { "would change" } else { "changed" };
        say(format!("{changes} {verb}, {same} the same{limits}"));
    }
    Ok(Exit::Success)
}
