//! Reading flows: a file, and what is read with it: limits that stand beside it, and packs.

use crate::failure::{Exit, Failure};
use std::fs::{File, FileType};
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use tidegate_flow::{Diagnostics, Document, Elsewhere, MAX_BYTES};

/// Limits and pools of all flows in its directory.
const SHARED: &str = "tidegate.yaml";
/// Beside it: a directory with a directory for each pack.
const PACKS: &str = "packs";

/// A file as the parser wants it.
pub struct Source {
    pub path: PathBuf,
    pub name: String,
    pub bytes: Vec<u8>,
    /// The pack it is part of.
    pack: Option<String>,
}

impl Source {
    pub fn read(path: &Path) -> Result<Source, Failure> {
        Source::of_pack(path, None)
    }

    fn of_pack(path: &Path, pack: Option<String>) -> Result<Source, Failure> {
        let bytes = read_bounded(path, MAX_BYTES)?;
        Ok(Source { path: path.to_owned(), name: name_of(path), bytes, pack })
    }

    fn part(&self) -> tidegate_flow::File<'_> {
        tidegate_flow::File { name: &self.name, bytes: &self.bytes, pack: self.pack.as_deref() }
    }
}

/// What messages call a file.
pub fn name_of(path: &Path) -> String {
    path.strip_prefix(".").unwrap_or(path).display().to_string()
}

/// A file and all that is read with it. It comes last, or in its place in its pack, so that what two files declare is
/// always wrong in the same one of them.
pub struct Set {
    pub sources: Vec<Source>,
    /// Which of them was asked for.
    pub main: usize,
}

impl Set {
    pub fn read(path: &Path) -> Result<Set, Failure> {
        let (home, pack) = home(path);
        let shared = home.join(SHARED);
        let is_shared = pack.is_none() && path.file_name().is_some_and(|name| name == SHARED);
        let mut sources = Vec::new();
        if !is_shared && shared.is_file() {
            sources.push(Source::read(&shared)?);
        }
        let mut main = None;
        for (of, part) in parts(&home.join(PACKS))? {
            let is_main = pack.as_ref() == Some(&of) && part.file_name() == path.file_name();
            main = main.or(is_main.then_some(sources.len()));
            sources.push(Source::of_pack(if is_main { path } else { &part }, Some(of))?);
        }
        if main.is_none() {
            sources.push(Source::of_pack(path, pack)?);
        }
        Ok(Set { main: main.unwrap_or(sources.len() - 1), sources })
    }

    /// Reads all of it; there is nothing besides.
    pub fn parse(&self) -> Result<Document, Diagnostics> {
        self.parse_with(Elsewhere::Nothing)
    }

    /// The same for a server, whose workers may have functions.
    pub fn parse_for_server(&self) -> Result<Document, Diagnostics> {
        self.parse_with(Elsewhere::Workers)
    }

    fn parse_with(&self, elsewhere: Elsewhere<'_>) -> Result<Document, Diagnostics> {
        let parts: Vec<_> = self.sources.iter().map(Source::part).collect();
        tidegate_flow::parse_files(&parts, elsewhere)
    }
}

/// Where a file is at home, which is where limits and packs are looked for, and the pack it is part of.
fn home(path: &Path) -> (PathBuf, Option<String>) {
    let directory = path.parent().unwrap_or(Path::new(""));
    // Nobody has to be in the right place to ask: `tidegate check charge.yaml` inside a pack means the pack.
    let absolute = std::path::absolute(directory.join(".")).unwrap_or_default();
    let name = |path: Option<&Path>| Some(path?.file_name()?.to_str()?.to_owned());
    match (name(Some(&absolute)), name(absolute.parent()).as_deref()) {
        (Some(pack), Some(PACKS)) => {
            let above = directory.parent().filter(|packs| packs.ends_with(PACKS)).and_then(Path::parent);
            (above.map_or_else(|| directory.join("../.."), Path::to_owned), Some(pack))
        }
        _ => (directory.to_owned(), None),
    }
}

/// The pack that a file is part of.
pub fn pack_of(path: &Path) -> Option<String> {
    home(path).1
}

/// The files of all packs, with the name of each pack, in the order of their names.
fn parts(packs: &Path) -> Result<Vec<(String, PathBuf)>, Failure> {
    let mut found = Vec::new();
    if !packs.is_dir() {
        return Ok(found);
    }
    for pack in visible(packs)?.into_iter().filter(|path| path.is_dir()) {
        let name = pack.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let files = visible(&pack)?.into_iter().filter(|path| is_yaml(path) && !path.is_dir());
        found.extend(files.map(|path| (name.clone(), path)));
    }
    Ok(found)
}

/// What a directory holds, sorted, without hidden ones.
fn visible(directory: &Path) -> Result<Vec<PathBuf>, Failure> {
    let failed = |error: io::Error| unreadable(directory, &error);
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if !entry.file_name().to_string_lossy().starts_with('.') {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

fn is_yaml(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml")
}

/// Everything in a file, unless it has more bytes than are accepted: then hardly more than that is read of it.
pub fn read_bounded(path: &Path, most: usize) -> Result<Vec<u8>, Failure> {
    let failed = |error: io::Error| unreadable(path, &error);
    // Asked before it is opened: opening a pipe waits for whoever writes to it.
    let kind = std::fs::metadata(path).map_err(failed)?.file_type();
    if !kind.is_file() && !kind.is_dir() && !is_open_already(path) {
        let sentence = format!("{} is not read as a file", kind_name(kind));
        let failure = Failure::new("unreadable", sentence).at(path.display()).exit(Exit::Invalid);
        return Err(failure.help("/dev/stdin reads what is piped into this command"));
    }
    let mut bytes = Vec::new();
    let one_too_many = most as u64 + 1;
    File::open(path).and_then(|file| file.take(one_too_many).read_to_end(&mut bytes)).map_err(failed)?;
    if bytes.len() > most {
        let sentence = format!("the file is larger than {} KiB, the most that is read", most / 1024);
        return Err(Failure::new("file-too-large", sentence).at(path.display()).exit(Exit::Invalid));
    }
    Ok(bytes)
}

/// Names of what whoever called has opened for this process: `/dev/stdin`, and `/dev/fd/63` for `<(command)`.
fn is_open_already(path: &Path) -> bool {
    path == Path::new("/dev/stdin") || path.starts_with("/dev/fd") || path.starts_with("/proc/self/fd")
}

fn kind_name(kind: FileType) -> &'static str {
    if kind.is_fifo() {
        "a pipe"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}

pub fn unreadable(path: &Path, error: &io::Error) -> Failure {
    Failure::new("unreadable", format!("the file cannot be read: {error}"))
        .at(path.display())
        .exit(Exit::Invalid)
}

/// The files a path stands for: itself, or what a directory holds, sorted, without hidden ones.
pub fn expand(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    let mut directories = vec![path.to_owned()];
    while let Some(directory) = directories.pop() {
        for path in visible(&directory)? {
            // A link to a directory is not followed: it may lead back.
            let kind = path.symlink_metadata().map_err(|error| unreadable(&path, &error))?;
            if kind.is_dir() {
                directories.push(path);
            } else if is_yaml(&path) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}
