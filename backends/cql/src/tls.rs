//! Encrypted connections.

use std::path::Path;
use std::sync::Arc;

use peristyle_core::{Error, Result};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

use crate::config::{CqlConfig, TlsVerify};

/// The settings of every connection.
pub(crate) fn client_config(config: &CqlConfig) -> Result<Arc<ClientConfig>> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::invalid(format!("tls: {error}")))?;
    let builder = match config.tls_verify {
        TlsVerify::Full => builder.with_root_certificates(authorities(config)?),
        lenient => {
            let verifier = Lenient { authority: authority(config, lenient, &provider)?, provider };
            builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier))
        }
    };
    let configured = match (&config.tls_cert, &config.tls_key) {
        (Some(cert), Some(key)) => builder
            .with_client_auth_cert(certificates(cert)?, private_key(key)?)
            .map_err(|error| Error::invalid(format!("tls_cert {}: {error}", cert.display())))?,
        _ => builder.with_no_client_auth(),
    };
    Ok(Arc::new(configured))
}

fn authorities(config: &CqlConfig) -> Result<RootCertStore> {
    let mut store = RootCertStore::empty();
    let Some(file) = &config.tls_ca else {
        store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if store.is_empty() {
            return Err(Error::invalid("this system has no certificate authorities: give tls_ca, a PEM file of them"));
        }
        return Ok(store);
    };
    for certificate in certificates(file)? {
        store.add(certificate).map_err(|error| Error::invalid(format!("tls_ca {}: {error}", file.display())))?;
    }
    Ok(store)
}

fn authority(
    config: &CqlConfig,
    verify: TlsVerify,
    provider: &Arc<CryptoProvider>,
) -> Result<Option<Arc<WebPkiServerVerifier>>> {
    if verify == TlsVerify::Nothing {
        return Ok(None);
    }
    let store = Arc::new(authorities(config)?);
    let verifier = WebPkiServerVerifier::builder_with_provider(store, Arc::clone(provider)).build();
    verifier.map(Some).map_err(|error| Error::invalid(format!("tls_ca: {error}")))
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let wrong = |error| Error::invalid(format!("{}: {error}; give a PEM file of certificates", file.display()));
    let read: Vec<_> = CertificateDer::pem_file_iter(file).map_err(wrong)?.collect::<Result<_, _>>().map_err(wrong)?;
    if read.is_empty() {
        return Err(Error::invalid(format!("{}: no certificate in it; give a PEM file of them", file.display())));
    }
    Ok(read)
}

fn private_key(file: &Path) -> Result<PrivateKeyDer<'static>> {
    PrivateKeyDer::from_pem_file(file)
        .map_err(|error| Error::invalid(format!("tls_key {}: {error}; give a PEM file of the key", file.display())))
}

/// Checks the authority and not the name, or nothing.
#[derive(Debug)]
struct Lenient {
    authority: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Lenient {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(authority) = &self.authority else {
            return Ok(ServerCertVerified::assertion());
        };
        // The name is checked last, so a wrong one means that everything else is right.
        match authority.verify_server_cert(certificate, intermediates, name, ocsp, now) {
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            outcome => outcome,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_not_what_they_should_be_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("not.pem");
        let missing = CqlConfig::new(["h"]).tls().tls_ca(&file);
        assert!(client_config(&missing).unwrap_err().to_string().contains("not.pem"));
        std::fs::write(&file, "no certificate").unwrap();
        for config in [
            CqlConfig::new(["h"]).tls().tls_ca(&file),
            CqlConfig::new(["h"]).tls().tls_verify(TlsVerify::Nothing).tls_identity(&file, &file),
        ] {
            let message = client_config(&config).unwrap_err().to_string();
            assert!(message.contains("not.pem") && !message.contains('\n'), "{message}");
        }
    }
}
