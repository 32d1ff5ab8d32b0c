//! The folder in which servers keep their files, and the shell that watches over them.

use std::fs;
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};

use crate::process::read;

/// Who servers run as when we are root, which they refuse to be. The package of PostgreSQL makes this user.
const SERVANT: &str = "postgres";

pub struct Folder {
    pub path: PathBuf,
    /// The user and group that servers run as, unless it is ourselves.
    servant: Option<(u32, u32)>,
}

impl Folder {
    pub fn make() -> Result<Self> {
        let is_root = read("id -u")? == "0";
        let servant = if is_root { Some((number("-u")?, number("-g")?)) } else { None };
        // It is removed by the shell that watches, which lives longer than we do.
        let path = tempfile::Builder::new().prefix("tidegate-services-").tempdir()?.keep();
        let folder = Folder { path, servant };
        folder.hand_over(&folder.path)?;
        fs::set_permissions(&folder.path, fs::Permissions::from_mode(0o700))?;
        Ok(folder)
    }

    /// Writes a file that only the servers' user reads.
    pub fn write(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.path.join(name);
        fs::write(&path, text)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
        self.hand_over(&path)?;
        Ok(path)
    }

    /// Starts a shell that runs `script`, waits until its input ends (because we closed it or are gone), runs `stop`,
    /// waits for its children and removes the folder. It has a process group of its own: an interrupt at the terminal is for us.
    pub fn watch(&self, script: &str, stop: &str) -> Result<Child> {
        let path = self.path.join("log");
        let log = fs::File::create(&path)?;
        self.hand_over(&path)?;
        let mut shell = Command::new("sh");
        shell
            .arg("-c")
            .arg(format!("set -e\n{script}\ncat > ended\nset +e\n{stop}\nwait\nrm -rf \"$PWD\""))
            .current_dir(&self.path)
            .stdin(Stdio::piped())
            .stdout(log.try_clone()?)
            .stderr(log)
            .process_group(0);
        if let Some((user, group)) = self.servant {
            shell.uid(user).gid(group);
        }
        shell.spawn().context("cannot start a shell")
    }

    /// How we say a command line so that it is run as the user that servers run as.
    pub fn as_servant(&self, line: &str) -> String {
        match self.servant {
            Some(_) => format!("runuser --user={SERVANT} -- {line}"),
            None => line.to_owned(),
        }
    }

    /// What the servers said last.
    pub fn last_words(&self) -> String {
        let mut said = String::new();
        // A log that cannot be read says nothing.
        let _ = fs::File::open(self.path.join("log")).and_then(|mut log| log.read_to_string(&mut said));
        let lines: Vec<&str> = said.lines().rev().take(20).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }

    fn hand_over(&self, path: &Path) -> Result<()> {
        if let Some((user, group)) = self.servant {
            chown(path, Some(user), Some(group))?;
        }
        Ok(())
    }
}

fn number(option: &str) -> Result<u32> {
    read(&format!("id {option} {SERVANT}"))?.parse().context("`id` printed no number")
}
