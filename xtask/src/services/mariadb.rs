//! MariaDB, with the certificate that PostgreSQL has, too.

use std::path::PathBuf;

use anyhow::{Context, Result};

use super::folder::Folder;
use super::{CERTIFICATE, KEY, Plan, USER, password, path};

/// The server, the script that makes its folder, and a client to see that it is up.
pub fn find_mariadb() -> Option<[PathBuf; 3]> {
    let find = |name: &str| {
        // Debian puts servers where only root's PATH leads.
        path().chain(["/usr/sbin".into()]).map(|folder| folder.join(name)).find(|program| program.is_file())
    };
    Some([find("mariadbd")?, find("mariadb-install-db")?, find("mariadb")?])
}

/// Started in the background, because making its folder takes a while, after there is a certificate.
pub fn plan(folder: &Folder, port: u16) -> Result<Plan> {
    let [server, install, client] = find_mariadb().context("MariaDB is missing")?;
    let (server, install, client) = (server.display(), install.display(), client.display());
    let password = password()?;
    let (place, user) = (folder.path.display(), format!("{USER}@127.0.0.1"));
    folder.write(
        "mariadb.sql",
        &format!(
            "create database {USER} character set utf8mb4;\ncreate user {user} identified by '{password}';\n\
             grant all on *.* to {user};\n"
        ),
    )?;
    folder.write(
        "mariadb.cnf",
        &format!(
            "[mariadbd]\ndatadir = {place}/mariadb\nsocket = {place}/mariadb.sock\npid_file = {place}/mariadb.pid\n\
             bind_address = 127.0.0.1\nport = {port}\nskip_name_resolve\nssl_cert = {place}/{CERTIFICATE}\n\
             ssl_key = {place}/{KEY}\n\
             [client]\nprotocol = tcp\nhost = 127.0.0.1\nport = {port}\nuser = {USER}\npassword = {password}\n"
        ),
    )?;
    Ok(Plan {
        script: format!(
            "{{ {install} --no-defaults --datadir=\"$PWD/mariadb\" --auth-root-authentication-method=normal --skip-test-db \
             --skip-name-resolve && exec {server} --defaults-file=mariadb.cnf --init-file=\"$PWD/mariadb.sql\"; }} & mariadb=$!"
        ),
        stop: "kill -KILL $mariadb".to_owned(),
        probes: vec![format!("{client} --defaults-file={place}/mariadb.cnf --execute=do(0)")],
        environment: vec![(
            "TIDEGATE_TEST_MARIADB",
            format!("mysql://{USER}:{password}@127.0.0.1:{port}/{USER}"),
        )],
    })
}
