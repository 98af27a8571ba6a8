//! Which certificate authorities are trusted.

use std::path::{Path, PathBuf};

use ureq::tls::{Certificate, PemItem, RootCerts, parse_pem};

use crate::error::Error;

/// Where the system keeps its certificate bundle, by distribution; the first that exists is taken. The list is that
/// of the distributions' own packages (`ca-certificates` of Debian, Fedora, openSUSE, Alpine and Arch).
#[cfg(target_os = "linux")]
const SYSTEM_BUNDLES: [&str; 6] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
    "/var/lib/ca-certificates/ca-bundle.pem",
];

/// Certificate authorities for TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trust {
    /// PEM files beside the system's store (`SSL_CERT_FILE`, pip's `cert`).
    pub extra: Vec<PathBuf>,
}

impl Trust {
    /// Reads the certificates of the system and of the extra files.
    pub(crate) fn roots(&self) -> Result<RootCerts, Error> {
        let mut roots: Vec<Certificate<'static>> = system()?;
        for file in &self.extra {
            let found = of_file(file)?;
            if found.is_empty() {
                return Err(Error::Certificates { origin: format!("`{}`", file.display()), reason: "it holds none".to_owned() });
            }
            roots.extend(found);
        }
        Ok(RootCerts::from(roots))
    }
}

/// The certificates of a PEM file.
fn of_file(file: &Path) -> Result<Vec<Certificate<'static>>, Error> {
    let failed = |reason: String| Error::Certificates { origin: format!("`{}`", file.display()), reason };
    let pem = std::fs::read(file).map_err(|cause| failed(cause.to_string()))?;
    let mut found = Vec::new();
    for item in parse_pem(&pem) {
        if let PemItem::Certificate(certificate) = item.map_err(|cause| failed(cause.to_string()))? {
            found.push(certificate);
        }
    }
    Ok(found)
}

/// The certificates of the system's store. None is no error here: an index may be reached without TLS.
#[cfg(target_os = "linux")]
fn system() -> Result<Vec<Certificate<'static>>, Error> {
    // The crate's own search would ask the environment first, which is the caller's to read.
    match SYSTEM_BUNDLES.iter().map(Path::new).find(|bundle| bundle.is_file()) {
        Some(bundle) => of_file(bundle),
        None => Ok(Vec::new()),
    }
}

/// The certificates of the system's store. None is no error here: an index may be reached without TLS.
#[cfg(not(target_os = "linux"))]
fn system() -> Result<Vec<Certificate<'static>>, Error> {
    let found = rustls_native_certs::load_native_certs();
    Ok(found.certs.iter().map(|certificate| Certificate::from_der(certificate).to_owned()).collect())
}
