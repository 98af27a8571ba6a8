//! What `metadata.json` says, but for the digest.

use kiln_format::build::Framework;
use kiln_format::metadata::{Builder, Commit, LoaderVersion, MetadataBackend, Provenance};
use kiln_format::{BackendName, Build, Metadata, OpsId};

use super::error::PackageError;
use crate::git::Scm;
use crate::matrix::Kind;

/// Who builds, and from which state of the project.
pub fn provenance(builder: Builder, scm: &Scm, dirty: bool) -> Provenance {
    let kernel = match scm {
        Scm::Git(state) => state.commit.parse().ok().map(|id| Commit { id, dirty }),
        Scm::None | Scm::Unusable(_) => None,
    };
    Provenance { builder, kernel }
}

/// The metadata of a variant, without the digest. `archs` are the architectures that were compiled, in order; empty where the backend
/// has none. A noarch variant's are what `build.toml` restricts it to.
///
/// # Errors
/// When the project has no licence.
pub fn metadata(
    build: &Build,
    backend: BackendName,
    kind: Kind,
    id: &OpsId,
    archs: &[String],
    provenance: Provenance,
) -> Result<Metadata, PackageError> {
    let general = &build.general;
    let license = general.license.as_ref().ok_or(PackageError::NoLicense)?;
    let kernel_depends: Vec<_> = build.kernel_depends_for(backend).into_iter().cloned().collect();
    let archs = match kind {
        Kind::Noarch => noarch_archs(build, backend),
        _ if archs.is_empty() => None,
        _ => Some(archs.to_vec()),
    };
    Ok(Metadata {
        name: general.name.value.clone(),
        id: id.as_str().to_owned(),
        version: general.version.value,
        kernels_minver: Some(LoaderVersion::needed_for(&kernel_depends)),
        license: license.value.clone(),
        upstream: general.upstream.as_ref().map(|url| url.value.clone()),
        source: general.source.as_ref().map(|url| url.value.clone()),
        python_depends: build.python_depends_for(backend).into_iter().map(|depends| depends.name().to_owned()).collect(),
        kernel_depends,
        backend: MetadataBackend { kind: backend, archs },
        digest: None,
        provenance: Some(provenance),
    })
}

fn noarch_archs(build: &Build, backend: BackendName) -> Option<Vec<String>> {
    let Framework::TorchNoarch(noarch) = &build.framework else { return None };
    match backend {
        BackendName::Cuda => noarch.cuda_capabilities.as_ref().map(|archs| archs.iter().map(ToString::to_string).collect()),
        BackendName::Rocm => noarch.rocm_archs.as_ref().map(|archs| archs.iter().map(ToString::to_string).collect()),
        _ => None,
    }
}
