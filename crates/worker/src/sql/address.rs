//! Where a database is, as its URL says: `postgres://…`, `mysql://…` (or `mariadb://…`), `sqlite:PATH`.
//!
//! With `sslmode=require` (PostgreSQL) or `require_ssl=true` (MySQL) in it the connection is encrypted, and the server
//! has to prove who it is to what this machine trusts, or to the certificates in the file that `sslrootcert` names.

use super::session::Session;
use super::trouble::Trouble;
use super::{mysql, postgres, sqlite};
use std::path::PathBuf;
use std::time::Duration;

/// Until a connection stands, its encryption included.
const CONNECT: Duration = Duration::from_secs(10);

pub(super) enum Address {
    Postgres(Box<postgres::Route>),
    Mysql(mysql::Route),
    Sqlite(PathBuf),
}

impl Address {
    /// Blocks for a moment. The error is a sentence, which may hold what is to be hidden.
    pub(super) fn parse(url: &str) -> Result<Address, String> {
        let (scheme, rest) = url.split_once(':').unwrap_or((url, ""));
        match scheme {
            "postgres" | "postgresql" => postgres::Route::parse(url).map(Box::new).map(Address::Postgres),
            "mysql" | "mariadb" => mysql::Route::parse(&format!("mysql:{rest}")).map(Address::Mysql),
            "sqlite" => match rest.strip_prefix("//").unwrap_or(rest) {
                "" | ":memory:" => Err("the address names no file".to_owned()),
                path => Ok(Address::Sqlite(PathBuf::from(path))),
            },
            _ => Err("the address starts with neither `postgres://`, `mysql://` nor `sqlite:`".to_owned()),
        }
    }

    pub(super) async fn connect(&self) -> Result<Session, Trouble> {
        let connecting = async {
            match self {
                Address::Postgres(route) => route.connect().await.map(Session::Postgres),
                Address::Mysql(route) => route.connect().await.map(Session::Mysql),
                Address::Sqlite(path) => sqlite::Session::open(path.clone()).await.map(Session::Sqlite),
            }
        };
        let late = |_| Trouble::Unreachable(format!("it takes longer than {} seconds", CONNECT.as_secs()));
        tokio::time::timeout(CONNECT, connecting).await.map_err(late)?
    }
}

/// Passwords in a URL, as they are written and as they are meant.
pub(super) fn passwords(url: &str) -> Vec<String> {
    let Ok(parsed) = url::Url::parse(url) else { return Vec::new() };
    let mut found: Vec<String> = parsed.password().map(str::to_owned).into_iter().collect();
    let options = parsed.query().unwrap_or_default().split('&');
    found.extend(options.filter_map(|option| option.strip_prefix("password=")).map(str::to_owned));
    let meant = |written: &String| {
        // What looks like a form, because that is how the library reads one.
        let form = format!("p={}", written.replace('+', "%2B"));
        url::form_urlencoded::parse(form.as_bytes()).next().map(|(_, value)| value.into_owned())
    };
    let meant: Vec<String> = found.iter().filter_map(meant).collect();
    // A URL that was read has its special characters in another form than the text that it was read from.
    let authority = url.split_once("://").map_or("", |(_, rest)| rest);
    let of_text = authority.rsplit_once('@').and_then(|(user, _)| user.split_once(':')).map(|(_, raw)| raw);
    found.into_iter().chain(meant).chain(of_text.map(str::to_owned)).collect()
}

/// The URL without `sslrootcert`, which the libraries do not know, and what that says.
pub(super) fn take_certificates(url: &str) -> (String, Option<String>) {
    let Some((place, options)) = url.split_once('?') else { return (url.to_owned(), None) };
    let (ours, theirs): (Vec<&str>, Vec<&str>) =
        options.split('&').partition(|option| option.starts_with("sslrootcert="));
    let file = ours.first().and_then(|option| option.split_once('=')).map(|(_, file)| file.to_owned());
    match theirs.is_empty() {
        true => (place.to_owned(), file),
        false => (format!("{place}?{}", theirs.join("&")), file),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_known_in_every_form() {
        let found = passwords("postgres://me:p%40ss@host/db?password=s+cret");
        for form in ["p%40ss", "p@ss", "s+cret"] {
            assert!(found.iter().any(|password| password == form), "{form}: {found:?}");
        }
        let found = passwords("mysql://me:ä b@host/db");
        assert!(found.contains(&"ä b".to_owned()), "{found:?}");
        assert!(passwords("postgres://me@host:5432/db").is_empty());
        assert!(passwords("sqlite:a@b:c").is_empty());
    }

    #[test]
    fn a_file_of_certificates_is_taken_out_of_the_url() {
        let url = "postgres://a@b/c?sslmode=require&sslrootcert=/etc/ca.pem&connect_timeout=3";
        let left = "postgres://a@b/c?sslmode=require&connect_timeout=3".to_owned();
        assert_eq!(take_certificates(url), (left, Some("/etc/ca.pem".to_owned())));
        assert_eq!(
            take_certificates("mysql://a@b/c?sslrootcert=x"),
            ("mysql://a@b/c".into(), Some("x".into()))
        );
        assert_eq!(take_certificates("postgres://a@b/c"), ("postgres://a@b/c".to_owned(), None));
    }

    #[test]
    fn what_is_no_database_is_said() {
        for (url, expected) in [
            ("oracle://h/db", "the address starts with neither"),
            ("sqlite:", "the address names no file"),
            ("postgres://h/db?sslmode=require&sslrootcert=/none", "/none: "),
            ("postgres:///db", "the address names no host"),
            ("mysql://h/db?nonsense=1", "nonsense"),
        ] {
            let error = Address::parse(url).err().unwrap_or_default();
            assert!(error.contains(expected), "{url}: {error}");
        }
        let path = |url| match Address::parse(url) {
            Ok(Address::Sqlite(path)) => path,
            _ => panic!("{url}"),
        };
        assert_eq!(path("sqlite:a/b.db"), PathBuf::from("a/b.db"));
        assert_eq!(path("sqlite:///a/b.db"), PathBuf::from("/a/b.db"));
    }
}
