//! What the chores need from the machine, how to see whether it is there, and how to get it.
//!
//! A need is a row of data: adding a browser is one more constant, named by the step that
//! uses it. Nothing is installed that no selected step asks for, and nothing is installed by half: where
//! we may not install, we say what is missing and which command gets it.

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::process::{answers, read, run};
use crate::services::{find_mariadb, find_pgbouncer, find_postgres};

/// Something that has to be on the machine before a step can run.
pub struct Need {
    pub what: &'static str,
    pub found: fn() -> bool,
    pub install: Install,
}

/// Where a need comes from.
pub enum Install {
    /// A package of the crates registry. The version is fixed, so that a release which asks for a newer
    /// compiler cannot break a fresh machine.
    Crate(&'static str),
    /// A component of the active Rust toolchain.
    Component(&'static str),
    /// Packages of Debian and its relatives.
    Debian(&'static str),
}

/// SQLite is compiled from C.
pub const C_COMPILER: Need = Need {
    what: "a C compiler",
    found: || answers("cc --version"),
    install: Install::Debian("gcc libc6-dev"),
};
pub const POSTGRES: Need = Need {
    what: "PostgreSQL's server",
    found: || find_postgres().is_some(),
    install: Install::Debian("postgresql"),
};
pub const PGBOUNCER: Need =
    Need { what: "pgbouncer", found: || find_pgbouncer().is_some(), install: Install::Debian("pgbouncer") };
pub const MARIADB: Need = Need {
    what: "MariaDB's server",
    found: || find_mariadb().is_some(),
    install: Install::Debian("mariadb-server-core mariadb-client-core"),
};
/// For the certificate of our own servers.
pub const OPENSSL: Need =
    Need { what: "openssl", found: || answers("openssl version"), install: Install::Debian("openssl") };
pub const RUSTFMT: Need = Need {
    what: "rustfmt",
    found: || answers("cargo fmt --version"),
    install: Install::Component("rustfmt"),
};
pub const CLIPPY: Need = Need {
    what: "clippy",
    found: || answers("cargo clippy --version"),
    install: Install::Component("clippy"),
};
pub const CARGO_DENY: Need = Need {
    what: "cargo-deny",
    found: || answers("cargo deny --version"),
    install: Install::Crate("cargo-deny@0.20.2"),
};
pub const NEXTEST: Need = Need {
    what: "cargo-nextest",
    found: || answers("cargo nextest --version"),
    install: Install::Crate("cargo-nextest@0.9.151"),
};
pub const LLVM_COV: Need = Need {
    what: "cargo-llvm-cov",
    found: || answers("cargo llvm-cov --version"),
    install: Install::Crate("cargo-llvm-cov@0.9.1"),
};
/// Coverage data can only be read by tools of the compiler's own LLVM version, which is why those of the
/// system do not count unless somebody names them on purpose.
pub const LLVM_TOOLS: Need = Need {
    what: "llvm-cov and llvm-profdata of the compiler's LLVM version",
    found: llvm_tools_found,
    install: Install::Component("llvm-tools"),
};

/// Installs what is missing, or says what is missing and how to get it.
pub fn meet<'a>(needs: impl IntoIterator<Item = &'a Need>) -> Result<()> {
    let mut met = Vec::new();
    let mut advice = Vec::new();
    for need in needs {
        if met.contains(&need.what) {
            continue;
        }
        met.push(need.what);
        if (need.found)() {
            continue;
        }
        match need.install.commands(&Machine::this()) {
            Ok(commands) => install(need, &commands)?,
            Err(how) => advice.push(format!("{} is missing: {how}", need.what)),
        }
    }
    if !advice.is_empty() {
        bail!("{}", advice.join("\n        "));
    }
    Ok(())
}

fn install(need: &Need, commands: &[String]) -> Result<()> {
    for command in commands {
        eprintln!("── {} is missing: {command}", need.what);
        run(command).with_context(|| format!("{} is missing and could not be installed", need.what))?;
    }
    if !(need.found)() {
        bail!("{} was installed but still does not answer; is cargo's bin folder on PATH?", need.what);
    }
    Ok(())
}

/// What decides whether we may install something ourselves.
struct Machine {
    has_apt: bool,
    is_root: bool,
    has_rustup: bool,
}

impl Machine {
    fn this() -> Self {
        Self {
            has_apt: answers("apt-get --version"),
            is_root: read("id -u").is_ok_and(|id| id == "0"),
            has_rustup: answers("rustup --version"),
        }
    }
}

impl Install {
    /// The commands that install it on this machine, or what to tell the person in front of it.
    fn commands(&self, machine: &Machine) -> Result<Vec<String>, String> {
        match self {
            Self::Crate(package) => Ok(vec![format!("cargo install --locked {package}")]),
            Self::Component(name) if machine.has_rustup => Ok(vec![format!("rustup component add {name}")]),
            Self::Component(name) => {
                Err(format!("get the component {name} from where this Rust toolchain came from"))
            }
            Self::Debian(packages) if machine.has_apt && machine.is_root => Ok(vec![
                "apt-get update".to_owned(),
                format!("apt-get install --yes --no-install-recommends {packages}"),
            ]),
            Self::Debian(packages) if machine.has_apt => {
                Err(format!("run `sudo apt-get install {packages}`, then start again"))
            }
            Self::Debian(packages) => Err(format!("install what Debian calls {packages}, then start again")),
        }
    }
}

fn llvm_tools_found() -> bool {
    let named = |variable| std::env::var_os(variable).is_some_and(|path| Path::new(&path).is_file());
    if named("LLVM_COV") && named("LLVM_PROFDATA") {
        return true;
    }
    let Ok(libraries) = read("rustc --print target-libdir") else { return false };
    let tools = Path::new(&libraries).with_file_name("bin");
    ["llvm-cov", "llvm-profdata"]
        .iter()
        .all(|tool| tools.join(format!("{tool}{}", std::env::consts::EXE_SUFFIX)).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT_ON_DEBIAN: Machine = Machine { has_apt: true, is_root: true, has_rustup: true };
    const USER_ON_DEBIAN: Machine = Machine { is_root: false, ..ROOT_ON_DEBIAN };
    const ELSEWHERE: Machine = Machine { has_apt: false, is_root: false, has_rustup: false };

    #[test]
    fn root_on_debian_installs_system_packages() {
        let commands = Install::Debian("gcc libc6-dev").commands(&ROOT_ON_DEBIAN).expect("may install");
        assert_eq!(
            commands,
            ["apt-get update", "apt-get install --yes --no-install-recommends gcc libc6-dev"]
        );
    }

    #[test]
    fn others_are_told_what_to_run() {
        let told = Install::Debian("gcc").commands(&USER_ON_DEBIAN).expect_err("may not install");
        assert_eq!(told, "run `sudo apt-get install gcc`, then start again");
        let told = Install::Debian("gcc").commands(&ELSEWHERE).expect_err("cannot install");
        assert_eq!(told, "install what Debian calls gcc, then start again");
        let told = Install::Component("clippy").commands(&ELSEWHERE).expect_err("cannot install");
        assert_eq!(told, "get the component clippy from where this Rust toolchain came from");
    }

    #[test]
    fn crates_are_installed_as_their_authors_locked_them() {
        let commands = Install::Crate("cargo-deny@1.2.3").commands(&ELSEWHERE).expect("always possible");
        assert_eq!(commands, ["cargo install --locked cargo-deny@1.2.3"]);
    }

    #[test]
    fn a_need_that_stays_missing_is_an_error() {
        const NEVER: Need =
            Need { what: "the philosopher's stone", found: || false, install: Install::Crate("none") };
        let error = install(&NEVER, &[]).expect_err("it is still missing");
        assert!(error.to_string().contains("the philosopher's stone was installed but still"), "{error}");
    }
}
