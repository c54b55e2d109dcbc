//! A throwaway certificate authority with one server and one client certificate.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    SanType,
};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use crate::{Error, cache};

/// The PEM files of a server with TLS. They live as long as the server.
#[derive(Clone, Debug)]
pub struct Certificates {
    authority: PathBuf,
    server: PathBuf,
    client: PathBuf,
    client_key: PathBuf,
}

impl Certificates {
    /// The certificate of the authority that signed both sides; clients trust it.
    pub fn authority(&self) -> &Path {
        &self.authority
    }

    /// The client's certificate.
    pub fn client(&self) -> &Path {
        &self.client
    }

    /// The client's private key (PKCS#8).
    pub fn client_key(&self) -> &Path {
        &self.client_key
    }

    /// What a client needs to connect. With `present`, it shows the client's certificate.
    pub fn client_config(&self, present: bool) -> Result<ClientConfig, Error> {
        let unusable = |error: &dyn fmt::Display| Error::Certificates(error.to_string());
        let read = |path| CertificateDer::from_pem_file(path).map_err(|error| unusable(&error));
        let mut trusted = RootCertStore::empty();
        trusted.add(read(&self.authority)?).map_err(|error| unusable(&error))?;
        // Named, because a process with several providers has no default one.
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| unusable(&error))?
            .with_root_certificates(trusted);
        if !present {
            return Ok(builder.with_no_client_auth());
        }
        let key = PrivateKeyDer::from_pem_file(&self.client_key).map_err(|error| unusable(&error))?;
        builder.with_client_auth_cert(vec![read(&self.client)?], key).map_err(|error| unusable(&error))
    }

    /// The server's private key and certificate in one file, as the servers read them.
    pub(crate) fn server(&self) -> &Path {
        &self.server
    }

    /// Issues certificates for a server at `address` (and `localhost`) into `folder`.
    pub(crate) fn issue(folder: &Path, address: IpAddr) -> Result<Certificates, Error> {
        cache::make_folder(folder)?;
        let files = Certificates {
            authority: folder.join("authority.pem"),
            server: folder.join("server.pem"),
            client: folder.join("client.pem"),
            client_key: folder.join("client.key"),
        };
        let pems = Pems::issue(address).map_err(|error| Error::Certificates(error.to_string()))?;
        cache::write(&files.authority, &pems.authority)?;
        cache::write(&files.server, &pems.server)?;
        cache::write(&files.client, &pems.client)?;
        cache::write(&files.client_key, &pems.client_key)?;
        Ok(files)
    }
}

struct Pems {
    authority: String,
    server: String,
    client: String,
    client_key: String,
}

impl Pems {
    fn issue(address: IpAddr) -> Result<Pems, rcgen::Error> {
        let key = KeyPair::generate()?;
        let mut params = named("Peristyle test authority")?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let authority = params.self_signed(&key)?;
        let issuer = Issuer::new(params, key);

        let mut server = named("server")?;
        server.subject_alt_names.push(SanType::IpAddress(address));
        server.subject_alt_names.push(SanType::DnsName("localhost".try_into()?));
        server.extended_key_usages.push(ExtendedKeyUsagePurpose::ServerAuth);
        let (server, server_key) = sign(&server, &issuer)?;

        let mut client = named("client")?;
        client.extended_key_usages.push(ExtendedKeyUsagePurpose::ClientAuth);
        let (client, client_key) = sign(&client, &issuer)?;
        let server = server_key + &server;
        Ok(Pems { authority: authority.pem(), server, client, client_key })
    }
}

fn named(name: &str) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name.push(DnType::CommonName, name);
    Ok(params)
}

/// A certificate and its key, both as PEM.
fn sign(params: &CertificateParams, issuer: &Issuer<'_, KeyPair>) -> Result<(String, String), rcgen::Error> {
    let key = KeyPair::generate()?;
    Ok((params.signed_by(&key, issuer)?.pem(), key.serialize_pem()))
}
