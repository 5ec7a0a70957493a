//! The HTTP client under all of it.

use std::sync::Arc;
use std::time::Duration;

use reqwest::Client;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt as _;

/// The longest wait for a connection.
const CONNECT: Duration = Duration::from_secs(30);

/// Why there is no HTTP client.
#[derive(Debug, thiserror::Error)]
pub enum WebError {
    /// The machine's certificates cannot be used.
    #[error("TLS is not to be had: {0}")]
    Tls(#[from] rustls::Error),
    /// Something else.
    #[error("no HTTP client is to be had: {0}")]
    Client(#[from] reqwest::Error),
}

/// A client that goes where it is told and nowhere else: no redirect, no proxy, no retry. Where
/// `secure`, it speaks TLS only, on ring, and trusts what this machine trusts; loading that takes
/// milliseconds.
///
/// # Errors
/// Where TLS cannot be set up.
pub fn web_client(secure: bool) -> Result<Client, WebError> {
    let client = Client::builder()
        .tls_backend_preconfigured(tls(secure)?)
        .https_only(secure)
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .no_proxy()
        .referer(false)
        .connect_timeout(CONNECT)
        .pool_max_idle_per_host(0)
        .user_agent(concat!("cyberine/", env!("CARGO_PKG_VERSION")))
        .build()?;
    Ok(client)
}

/// Plain http loads no certificates.
fn tls(secure: bool) -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(if secure {
        config.with_platform_verifier()?.with_no_client_auth()
    } else {
        config.with_root_certificates(RootCertStore::empty()).with_no_client_auth()
    })
}
