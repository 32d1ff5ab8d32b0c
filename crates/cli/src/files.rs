//! Reading flows: a file, and the limits and pools that stand beside it.

use crate::failure::{Exit, Failure};
use std::fs::{File, FileType};
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use tidegate_flow::{Diagnostics, Document, Elsewhere, MAX_BYTES};

/// Limits and pools of all flows in its directory.
pub const SHARED: &str = "tidegate.yaml";

/// A file as the parser wants it.
pub struct Source {
    pub name: String,
    pub bytes: Vec<u8>,
}

impl Source {
    pub fn read(path: &Path) -> Result<Source, Failure> {
        let bytes = read_bounded(path)?;
        let name = path.strip_prefix(".").unwrap_or(path).display().to_string();
        Ok(Source { name, bytes })
    }

    /// What stands beside a file, if there is anything.
    pub fn beside(path: &Path) -> Result<Option<Source>, Failure> {
        let shared = path.with_file_name(SHARED);
        if shared == path || !shared.is_file() {
            return Ok(None);
        }
        Source::read(&shared).map(Some)
    }

    /// Reads it together with what stands beside it. A pool that neither declares is an error.
    pub fn parse(&self, beside: Option<&Source>) -> Result<Document, Diagnostics> {
        let files: Vec<(&str, &[u8])> = std::iter::once(self).chain(beside).map(Source::parts).collect();
        tidegate_flow::parse_with(&files, Elsewhere::Nothing)
    }

    /// Reads it without knowing what else is declared.
    pub fn parse_alone(&self) -> Result<Document, Diagnostics> {
        tidegate_flow::parse_with(&[self.parts()], Elsewhere::Unknown)
    }

    fn parts(&self) -> (&str, &[u8]) {
        (&self.name, &self.bytes)
    }
}

/// Everything in a file, unless it is larger than any that is accepted: then hardly more than that is read of it.
fn read_bounded(path: &Path) -> Result<Vec<u8>, Failure> {
    let failed = |error: io::Error| unreadable(path, &error);
    // Asked before it is opened: opening a pipe waits for whoever writes to it.
    let kind = std::fs::metadata(path).map_err(failed)?.file_type();
    if !kind.is_file() && !kind.is_dir() && !is_open_already(path) {
        let sentence = format!("{} is not read as a file", kind_name(kind));
        let failure = Failure::new("unreadable", sentence).at(path.display()).exit(Exit::Invalid);
        return Err(failure.help("/dev/stdin reads what is piped into this command"));
    }
    let mut bytes = Vec::new();
    let one_too_many = MAX_BYTES as u64 + 1;
    File::open(path).and_then(|file| file.take(one_too_many).read_to_end(&mut bytes)).map_err(failed)?;
    if bytes.len() > MAX_BYTES {
        let sentence = format!("the file is larger than {} KiB, the most that is read", MAX_BYTES / 1024);
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
        let entries = std::fs::read_dir(&directory).map_err(|error| unreadable(&directory, &error))?;
        for entry in entries {
            let entry = entry.map_err(|error| unreadable(&directory, &error))?;
            if entry.file_name().to_string_lossy().starts_with('.') {
                continue;
            }
            // A link to a directory is not followed: it may lead back.
            let kind = entry.file_type().map_err(|error| unreadable(&entry.path(), &error))?;
            let path = entry.path();
            if kind.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}
