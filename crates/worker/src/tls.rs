//! Whom this worker trusts: what this machine does, because that is what its administrator chose, authorities of a
//! company included. Reading that blocks for a moment. Errors are sentences.

use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::sync::Arc;

/// Encrypts, towards servers that one of the certificates in `file` vouches for, or without a file one of this machine's.
pub fn config(file: Option<&str>) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates(file)?);
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("this worker cannot encrypt: {error}"))?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

/// Those that can be used. What cannot be read among the many of a machine is not trusted, and that is all.
pub(crate) fn certificates(file: Option<&str>) -> Result<Vec<CertificateDer<'static>>, String> {
    let Some(file) = file else {
        let usable = |certificate: &CertificateDer<'_>| {
            RootCertStore::empty().add(certificate.clone().into_owned()).is_ok()
        };
        let mut found = rustls_native_certs::load_native_certs().certs;
        found.retain(usable);
        return Ok(found);
    };
    let unreadable = |error| format!("{file}: {error}");
    let read = CertificateDer::pem_file_iter(file).map_err(unreadable)?;
    read.collect::<Result<_, _>>().map_err(unreadable)
}
