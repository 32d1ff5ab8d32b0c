//! PostgreSQL as it is shipped (every commit is flushed), and pgbouncer in transaction mode in front of it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::folder::Folder;
use super::{CERTIFICATE, KEY, Plan, USER, password, path};

/// By which servers prove who they are: signed by nobody but itself.
const REQUEST: &str = "[req]\ndistinguished_name = name\nx509_extensions = server\nprompt = no\n\
    [name]\nCN = localhost\n[server]\nsubjectAltName = IP:127.0.0.1\nbasicConstraints = CA:FALSE\n";

/// The folder of PostgreSQL's programs: where PATH says, or where Debian puts the newest.
pub fn find_postgres() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut debian: Vec<PathBuf> = versions.map(|version| version.path().join("bin")).collect();
    debian.sort();
    let complete = |folder: &PathBuf| {
        ["initdb", "pg_ctl", "postgres", "pg_isready"].iter().all(|name| folder.join(name).is_file())
    };
    path().chain(debian.into_iter().rev()).find(complete)
}

/// Debian puts it where only root's PATH leads.
pub fn find_pgbouncer() -> Option<PathBuf> {
    path()
        .chain(["/usr/sbin".into()])
        .map(|folder| folder.join("pgbouncer"))
        .find(|program| program.is_file())
}

pub fn plan(folder: &Folder, port: u16, bouncer_port: u16) -> Result<Plan> {
    let programs = find_postgres().context("PostgreSQL is missing")?;
    let bouncer = find_pgbouncer().context("pgbouncer is missing")?;
    let password = password()?;
    folder.write("password", &password)?;
    folder.write("users.txt", &format!("\"{USER}\" \"{password}\"\n"))?;
    folder.write("openssl.cnf", REQUEST)?;
    folder.write("pgbouncer.ini", &bouncer_settings(folder, port, bouncer_port))?;
    folder.write("server.conf", &server_settings(folder, port))?;
    let programs_name = programs.display();
    let control = control(&programs, folder);
    let script = format!(
        "{programs_name}/initdb --pgdata=data --username={USER} --pwfile=password --auth=scram-sha-256 --encoding=UTF8 \
         --no-locale --no-sync --no-instructions\n\
         openssl req -x509 -newkey rsa:2048 -nodes -days 2 -config openssl.cnf -keyout {KEY} -out {CERTIFICATE}\n\
         cat server.conf >> data/postgresql.conf\n\
         {control} start\n\
         {} pgbouncer.ini & bouncer=$!",
        bouncer.display()
    );
    let ready = |port| format!("{programs_name}/pg_isready --host=127.0.0.1 --port={port} --quiet");
    let url = |port| format!("postgres://{USER}:{password}@127.0.0.1:{port}/postgres");
    Ok(Plan {
        script,
        // Nobody wants the data, so it need not be written before the end.
        stop: format!("kill -TERM $bouncer; {control} stop --mode=immediate"),
        probes: vec![ready(port), ready(bouncer_port)],
        environment: vec![
            ("TIDEGATE_TEST_POSTGRES", url(port)),
            ("TIDEGATE_TEST_POSTGRES_CONTROL", folder.as_servant(&control)),
            ("TIDEGATE_TEST_PGBOUNCER", url(bouncer_port)),
            ("TIDEGATE_TEST_CERTIFICATE", folder.path.join(CERTIFICATE).display().to_string()),
        ],
    })
}

/// A command line that starts or stops the server, once it is told which, and waits until that is done.
fn control(programs: &Path, folder: &Folder) -> String {
    let (programs, folder) = (programs.display(), folder.path.display());
    format!("{programs}/pg_ctl --pgdata={folder}/data --log={folder}/log --silent --wait")
}

fn server_settings(folder: &Folder, port: u16) -> String {
    let folder = folder.path.display();
    format!(
        "ssl = on\nssl_cert_file = '{folder}/{CERTIFICATE}'\nssl_key_file = '{folder}/{KEY}'\nlisten_addresses = '127.0.0.1'\nport = {port}\n\
         max_connections = 200\nunix_socket_directories = '{folder}'\n"
    )
}

fn bouncer_settings(folder: &Folder, port: u16, own_port: u16) -> String {
    let folder = folder.path.display();
    format!(
        "[databases]\n* = host=127.0.0.1 port={port}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {own_port}\n\
         unix_socket_dir =\nauth_type = scram-sha-256\nauth_file = {folder}/users.txt\npool_mode = transaction\n\
         max_client_conn = 500\ndefault_pool_size = 10\nlogfile = {folder}/pgbouncer.log\n"
    )
}
