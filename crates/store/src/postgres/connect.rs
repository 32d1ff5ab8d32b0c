//! How the database is reached. With `sslmode=require` in its URL the connection is encrypted, and the server has to
//! prove who it is to the certificates that this machine trusts, or to those in the file that `sslrootcert` names.
//! Otherwise it is plain.

use super::fault;
use crate::contract::StoreError;
use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt, StreamExt};
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_postgres::config::SslMode;
use tokio_postgres::{AsyncMessage, CancelToken, Client, Config, Connection, Error, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

/// What a connection says without being asked. Nothing else works unless this is read.
pub type Messages = BoxStream<'static, Result<AsyncMessage, Error>>;

/// Where the database is, and how to get there.
#[derive(Clone)]
pub struct Route {
    config: Config,
    tls: Option<MakeRustlsConnect>,
}

impl Route {
    pub fn parse(url: &str) -> Result<Self, StoreError> {
        let (url, certificates) = take_certificates(url);
        let config: Config = url.parse().map_err(|error| StoreError::Broken(fault::words(&error)))?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(StoreError::Broken("its address names no host".to_owned()));
        }
        let tls = match config.get_ssl_mode() {
            SslMode::Require => Some(tls(certificates.as_deref()).map_err(StoreError::Broken)?),
            _ => None,
        };
        Ok(Route { config, tls })
    }

    /// Asks the server to end what a session is at. It may have ended before; nobody says.
    pub async fn cancel(&self, token: &CancelToken) -> Result<(), Error> {
        match &self.tls {
            Some(tls) => token.cancel_query(tls.clone()).await,
            None => token.cancel_query(NoTls).await,
        }
    }

    pub async fn connect(&self) -> Result<(Client, Messages), Error> {
        match &self.tls {
            Some(tls) => self
                .config
                .connect(tls.clone())
                .await
                .map(|(client, connection)| (client, messages(connection))),
            None => {
                let plain = self.config.clone().ssl_mode(SslMode::Disable).connect(NoTls).boxed().await;
                plain.map(|(client, connection)| (client, messages(connection)))
            }
        }
    }
}

fn messages<S, T>(mut connection: Connection<S, T>) -> Messages
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    stream::poll_fn(move |context| connection.poll_message(context)).boxed()
}

/// The library knows every other part of a URL.
fn take_certificates(url: &str) -> (String, Option<String>) {
    let Some((place, options)) = url.split_once('?') else { return (url.to_owned(), None) };
    let (ours, theirs): (Vec<&str>, Vec<&str>) =
        options.split('&').partition(|option| option.starts_with("sslrootcert="));
    let file = ours.first().and_then(|option| option.split_once('=')).map(|(_, file)| file.to_owned());
    (format!("{place}?{}", theirs.join("&")), file)
}

fn tls(file: Option<&str>) -> Result<MakeRustlsConnect, String> {
    let mut roots = RootCertStore::empty();
    match file {
        Some(file) => {
            for certificate in
                CertificateDer::pem_file_iter(file).map_err(|error| format!("{file}: {error}"))?
            {
                let certificate = certificate.map_err(|error| format!("{file}: {error}"))?;
                roots.add(certificate).map_err(|error| format!("{file}: {error}"))?;
            }
        }
        // What cannot be read among many is not trusted, and that is all.
        None => drop(roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs)),
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_certificates_is_taken_out_of_the_url() {
        let url = "postgres://a@b/c?sslmode=require&sslrootcert=/etc/ca.pem&connect_timeout=3";
        let left = "postgres://a@b/c?sslmode=require&connect_timeout=3".to_owned();
        assert_eq!(take_certificates(url), (left, Some("/etc/ca.pem".to_owned())));
        assert_eq!(take_certificates("postgres://a@b/c"), ("postgres://a@b/c".to_owned(), None));
    }

    #[test]
    fn certificates_that_cannot_be_read_are_said_at_once() {
        let missing = Route::parse("postgres://a@b/c?sslmode=require&sslrootcert=/no/such/file").err();
        assert!(matches!(missing, Some(StoreError::Broken(why)) if why.starts_with("/no/such/file")));
        assert!(Route::parse("postgres://a@b/c?sslmode=require").is_ok());
    }
}
