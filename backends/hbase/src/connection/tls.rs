//! Encrypted connections.

use std::path::Path;
use std::sync::Arc;

use peristyle_core::{Error, Result};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use crate::config::HBaseConfig;

/// How connections are encrypted, if they are to be.
pub(super) fn client_config(config: &HBaseConfig) -> Result<Option<Arc<ClientConfig>>> {
    if !config.tls {
        return Ok(None);
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::invalid(format!("tls: {error}")))?;
    let trusted = match &config.tls_ca {
        Some(file) => authorities(file)?,
        None => known_authorities()?,
    };
    Ok(Some(Arc::new(builder.with_root_certificates(trusted).with_no_client_auth())))
}

fn known_authorities() -> Result<RootCertStore> {
    let mut store = RootCertStore::empty();
    store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if store.is_empty() {
        return Err(Error::invalid("this system has no certificate authorities: give tls_ca, a PEM file of them"));
    }
    Ok(store)
}

fn authorities(file: &Path) -> Result<RootCertStore> {
    let wrong =
        |why: &dyn std::fmt::Display| Error::invalid(format!("tls_ca {}: {why}; give a PEM file", file.display()));
    let mut store = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file).map_err(|error| wrong(&error))? {
        store.add(certificate.map_err(|error| wrong(&error))?).map_err(|error| wrong(&error))?;
    }
    if store.is_empty() { Err(wrong(&"no certificate in it")) } else { Ok(store) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_certificates_is_named() {
        for file in ["/no/such/file.pem", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")] {
            let mut config = HBaseConfig::new(["h"]);
            (config.tls, config.tls_ca) = (true, Some(file.into()));
            let message = client_config(&config).err().unwrap().to_string();
            assert!(message.contains(file) && !message.contains('\n'), "{message}");
        }
    }
}
