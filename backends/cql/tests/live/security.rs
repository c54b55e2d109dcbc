//! Encryption and logins.

use peristyle_core::request::{Replication, Schema};
use peristyle_core::{Backend, ErrorKind, Request};
use peristyle_cql::{CqlBackend, CqlConfig, TlsVerify};
use peristyle_servers::Cassandra;

async fn works(config: CqlConfig) {
    let backend = CqlBackend::connect(config.keyspace("secured")).await.unwrap();
    let make = Schema::CreateNamespace { replication: Replication::default(), if_absent: true };
    backend.call(Request::schema(make)).await.unwrap().into_done().unwrap();
}

async fn refused(config: CqlConfig) -> peristyle_core::Error {
    let error = CqlBackend::connect(config).await.unwrap_err();
    assert!(!error.message().contains('\n'), "{error}");
    error
}

#[tokio::test]
async fn tls_is_checked_against_the_authority_and_can_be_relaxed() {
    let node = Cassandra::builder().tls().start().unwrap();
    let certificates = node.certificates().unwrap();
    let config = || CqlConfig::new([node.cql_address().to_string()]);
    works(config().tls().tls_ca(certificates.authority())).await;
    works(config().tls().tls_ca(certificates.authority()).tls_verify(TlsVerify::Authority)).await;
    works(config().tls().tls_verify(TlsVerify::Nothing)).await;
    let uri = format!("{}?tls=true&tls_ca={}", node.uri(), certificates.authority().display());
    works(CqlConfig::from_uri(&uri).unwrap()).await;

    // Of another authority: its own certificate is no authority.
    let stranger = refused(config().tls().tls_ca(certificates.client())).await;
    assert_eq!(stranger.kind(), ErrorKind::Unavailable, "{stranger}");
    let plain = refused(config()).await;
    assert_eq!(plain.kind(), ErrorKind::Unavailable, "{plain}");
    assert!(plain.message().contains("tls"), "{plain}");
}

#[tokio::test]
async fn mutual_tls_wants_a_certificate() {
    let node = Cassandra::builder().mutual_tls().start().unwrap();
    let certificates = node.certificates().unwrap();
    let config = || CqlConfig::new([node.cql_address().to_string()]).tls().tls_ca(certificates.authority());
    works(config().tls_identity(certificates.client(), certificates.client_key())).await;
    let stranger = refused(config()).await;
    assert_eq!(stranger.kind(), ErrorKind::Unavailable, "{stranger}");
}

#[tokio::test]
async fn a_login_is_accepted_or_refused() {
    let node = Cassandra::builder().password_auth().start().unwrap();
    let config = || CqlConfig::new([node.cql_address().to_string()]);
    works(config().login("cassandra", "cassandra")).await;
    for wrong in [config(), config().login("cassandra", "wrong"), config().login("nobody", "cassandra")] {
        let error = refused(wrong).await;
        assert_eq!(error.kind(), ErrorKind::Unauthenticated, "{error}");
    }
    // A user who may log in and nothing more.
    let admin = CqlBackend::connect(config().login("cassandra", "cassandra")).await.unwrap();
    crate::support::cql(&admin, "CREATE ROLE guest WITH PASSWORD = 'g' AND LOGIN = true").await;
    let guest = CqlBackend::connect(config().login("guest", "g").keyspace("secured")).await.unwrap();
    let make = Schema::CreateNamespace { replication: Replication::default(), if_absent: false };
    let error = guest.call(Request::schema(make)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
}
