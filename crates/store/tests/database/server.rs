//! A PostgreSQL of its own, for a test that stops it: made with the programs of the shared one, and run by the same user.

use super::{Admin, server};
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

pub struct Server {
    pub url: String,
    folder: PathBuf,
    programs: PathBuf,
    /// The user and group that it runs as.
    owner: (u32, u32),
    /// Ends it and removes its folder as soon as we are gone, however we end.
    watchdog: Option<Child>,
}

impl Server {
    pub fn start() -> Server {
        let shared = server("TIDEGATE_TEST_POSTGRES");
        let admin = Admin::connect(&shared);
        let programs = admin.value("select setting from pg_config where name = 'BINDIR'").into();
        let data = std::fs::metadata(admin.value("show data_directory")).unwrap();
        let folder = tempfile::Builder::new().prefix("tidegate-server-").tempdir().unwrap().keep();
        chown(&folder, Some(data.uid()), Some(data.gid())).unwrap();
        let owner = (data.uid(), data.gid());
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let (login, _) = shared.split_once('@').expect("the URL names a user");
        let url = format!("{login}@127.0.0.1:{port}/postgres");
        let mut made = Server { url, folder, programs, owner, watchdog: None };
        made.make(login, port);
        made.watchdog = Some(made.watch());
        made.start_again();
        made
    }

    fn make(&self, login: &str, port: u16) {
        let (user, password) = login.rsplit_once('/').and_then(|(_, login)| login.split_once(':')).unwrap();
        std::fs::write(self.folder.join("password"), password).unwrap();
        chown(self.folder.join("password"), Some(self.owner.0), Some(self.owner.1)).unwrap();
        let options = "--pwfile=password --auth=scram-sha-256 --encoding=UTF8 --no-locale --no-sync";
        self.run("initdb", format!("--pgdata=data --username={user} {options}").split(' '));
        // It loses its process and never its machine, so nothing need be flushed.
        let settings = format!(
            "\nfsync = off\nlisten_addresses = '127.0.0.1'\nport = {port}\nunix_socket_directories = '{}'\n",
            self.folder.display()
        );
        let path = self.folder.join("data/postgresql.conf");
        let made = std::fs::read_to_string(&path).unwrap();
        std::fs::write(path, made + &settings).unwrap();
    }

    /// At once, as in a crash: it has to recover when it is started again.
    pub fn stop(&self) {
        self.run("pg_ctl", ["stop", "--pgdata=data", "--mode=immediate", "--wait"]);
    }

    /// Returns when it can be used.
    pub fn start_again(&self) {
        self.run("pg_ctl", ["start", "--pgdata=data", "--log=log", "--wait"]);
    }

    fn run<'a>(&self, program: &str, args: impl IntoIterator<Item = &'a str>) {
        let mut command = self.command(&self.programs.join(program));
        // The server would keep pipes open for as long as it runs.
        let quiet = command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        assert!(quiet.status().unwrap().success(), "{program} in {}", self.folder.display());
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.folder).uid(self.owner.0).gid(self.owner.1);
        command
    }

    fn watch(&self) -> Child {
        let stop = format!("{}/pg_ctl stop --pgdata=data --mode=immediate --wait", self.programs.display());
        let mut shell = self.command(Path::new("sh"));
        shell.args(["-c", &format!("cat; {stop}; rm -rf \"$PWD\"")]).process_group(0);
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut watchdog) = self.watchdog.take() {
            drop(watchdog.stdin.take());
            watchdog.wait().unwrap();
        }
    }
}
