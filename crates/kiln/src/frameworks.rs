//! The one place where frameworks are listed: which toolchain a variant needs, where it comes from, and what speaks its ABI.

use std::collections::{BTreeMap, BTreeSet};

use kiln_backend::{Framework, TorchFramework, TvmFfiFramework};
use kiln_format::variant::Compute;
use kiln_format::{Build, MajorMinor, OpsId, Version};
use kiln_toolchain::{Availability, Error, Provider, Provisioner, StandIn, Terms, TorchAddition, TorchToolchain, TvmFfiToolchain};

use crate::matrix::{Kind, Selected};

/// Where torch comes from.
#[derive(Clone, Debug)]
pub enum TorchSource {
    /// Wheels of the catalog, by the release that each variant is compiled with.
    Wheels,
    /// This one, for every variant.
    System(Box<TorchToolchain>),
}

/// What a variant is compiled against.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FrameworkUse {
    /// This release of torch, in the build for this compute.
    Torch(Version, Compute),
    /// A tvm-ffi of this minor version.
    TvmFfi(MajorMinor),
}

impl FrameworkUse {
    /// What `selected` is compiled against; none for Python only.
    pub fn of(selected: &Selected) -> Option<Self> {
        match selected.kind {
            Kind::Noarch => None,
            Kind::TvmFfi(minor) => Some(Self::TvmFfi(minor)),
            Kind::Torch | Kind::TorchStable(_) => {
                let row = selected.row.as_ref()?;
                Some(Self::Torch(row.release.clone(), row.compute))
            }
        }
    }
}

/// How frameworks are provided.
#[derive(Clone, Copy)]
pub struct FrameworkSource<'a> {
    /// Provides them from wheels.
    pub provisioner: &'a Provisioner<'a>,
    /// Where torch comes from.
    pub torch: &'a TorchSource,
    /// The tvm-ffi release that the project names; by default the oldest of the minor that a variant is named after.
    pub tvm_ffi: Option<&'a Version>,
    /// What the catalog calls the target: `linux-x86_64`.
    pub platform: &'a str,
}

impl FrameworkSource<'_> {
    fn tvm_ffi_release(&self, minor: MajorMinor) -> Result<Version, Error> {
        match self.tvm_ffi.filter(|release| release.major_minor() == minor) {
            Some(release) => Ok(release.clone()),
            None => Ok(self.provisioner.catalog().oldest_tvm_ffi(minor, self.platform)?.version.clone()),
        }
    }
}

/// A toolchain, for the build record and for people.
#[derive(Clone, Copy, Debug)]
pub struct Provided<'a> {
    /// The framework: `torch` or `tvm-ffi`.
    pub name: &'static str,
    /// The release.
    pub version: &'a Version,
    /// Where it came from.
    pub provider: &'a Provider,
    /// Digest that changes whenever it does.
    pub identity: &'a str,
    /// The terms under which its files come.
    pub terms: &'a [Terms],
    /// The build of torch that its headers stand in for, if it is another one.
    pub stand_in: Option<&'a StandIn>,
    /// The package beside torch.
    pub addition: Option<&'a TorchAddition>,
}

/// A framework that a build would find.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundFramework {
    /// `torch`, `torch-npu` or `tvm-ffi`.
    pub name: &'static str,
    /// The release; of torch-npu that of the torch that it was made for.
    pub release: Version,
    /// Where it would come from; none for one that is installed.
    pub availability: Option<Availability>,
}

/// The frameworks of one build, each with its headers.
#[derive(Clone, Debug, Default)]
pub struct Frameworks {
    /// By release and compute.
    torch: BTreeMap<(Version, Compute), TorchToolchain>,
    tvm_ffi: BTreeMap<MajorMinor, TvmFfiToolchain>,
}

impl Frameworks {
    /// Provides everything in `uses`. Without `fetch` only names and digests are known: the directories may not be there.
    ///
    /// # Errors
    /// When a release is unknown or cannot be fetched.
    pub fn provide(uses: &BTreeSet<FrameworkUse>, source: &FrameworkSource<'_>, fetch: bool) -> Result<Self, Error> {
        let FrameworkSource { provisioner, platform, .. } = source;
        let mut frameworks = Self::default();
        for used in uses {
            match used {
                FrameworkUse::Torch(release, compute) => {
                    let toolchain = match source.torch {
                        TorchSource::System(toolchain) => (**toolchain).clone(),
                        TorchSource::Wheels => provisioner.torch_for(release, *compute, platform, fetch)?,
                    };
                    let toolchain = match provisioner.torch_addition(&toolchain.version, *compute, platform, fetch)? {
                        Some(addition) => toolchain.with_addition(addition),
                        None => toolchain,
                    };
                    frameworks = frameworks.with_torch(release.clone(), *compute, toolchain);
                }
                FrameworkUse::TvmFfi(minor) => {
                    let release = source.tvm_ffi_release(*minor)?;
                    let toolchain =
                        if fetch { provisioner.tvm_ffi(&release, platform)? } else { provisioner.planned_tvm_ffi(&release, platform)? };
                    frameworks = frameworks.with_tvm_ffi(toolchain);
                }
            }
        }
        Ok(frameworks)
    }

    /// Sees that [`Frameworks::provide`] would find everything here.
    ///
    /// # Errors
    /// Those of a fetch.
    pub fn would_provide(&self, source: &FrameworkSource<'_>) -> Result<Vec<FoundFramework>, Error> {
        let mut all = Vec::new();
        for ((release, compute), toolchain) in &self.torch {
            let availability = match source.torch {
                TorchSource::System(_) => None,
                TorchSource::Wheels => Some(source.provisioner.would_provide_torch(release, *compute, source.platform)?),
            };
            let found = FoundFramework { name: "torch", release: toolchain.version.clone(), availability };
            if !all.contains(&found) {
                all.push(found);
            }
            if let Some(addition) = &toolchain.addition {
                let availability = source.provisioner.would_provide_torch_addition(&toolchain.version, *compute, source.platform)?;
                all.push(FoundFramework { name: "torch-npu", release: addition.torch.clone(), availability });
            }
        }
        for TvmFfiToolchain { version, .. } in self.tvm_ffi.values() {
            let availability = Some(source.provisioner.would_provide_tvm_ffi(version, source.platform)?);
            all.push(FoundFramework { name: "tvm-ffi", release: version.clone(), availability });
        }
        Ok(all)
    }

    /// What speaks the ABI of `selected` in an extension called `ops_id`; none for Python only, or when its toolchain was not provided.
    pub fn bind(&self, build: &Build, selected: &Selected, ops_id: &OpsId) -> Option<Box<dyn Framework>> {
        let file_name = selected.variant.extension_name(ops_id)?;
        let ops_id = ops_id.to_string();
        match FrameworkUse::of(selected)? {
            FrameworkUse::Torch(release, compute) => {
                let stable_abi = build.stable_abi_for(selected.backend).map(|version| version.value.clone());
                Some(Box::new(TorchFramework { toolchain: self.torch.get(&(release, compute))?.clone(), stable_abi, ops_id, file_name }))
            }
            FrameworkUse::TvmFfi(minor) => {
                Some(Box::new(TvmFfiFramework { toolchain: self.tvm_ffi.get(&minor)?.clone(), ops_id, file_name }))
            }
        }
    }

    /// The torch that `selected` is compiled against; none where it is compiled against something else.
    pub fn torch(&self, selected: &Selected) -> Option<&TorchToolchain> {
        match FrameworkUse::of(selected)? {
            FrameworkUse::Torch(release, compute) => self.torch.get(&(release, compute)),
            FrameworkUse::TvmFfi(_) => None,
        }
    }

    /// The toolchain that `selected` is compiled against.
    pub fn provided(&self, selected: &Selected) -> Option<Provided<'_>> {
        match FrameworkUse::of(selected)? {
            FrameworkUse::Torch(release, compute) => {
                let TorchToolchain { version, provider, identity, terms, stand_in, addition, .. } = self.torch.get(&(release, compute))?;
                Some(Provided {
                    name: "torch",
                    version,
                    provider,
                    identity,
                    terms,
                    stand_in: stand_in.as_ref(),
                    addition: addition.as_ref(),
                })
            }
            FrameworkUse::TvmFfi(minor) => {
                let TvmFfiToolchain { version, provider, identity, terms, .. } = self.tvm_ffi.get(&minor)?;
                Some(Provided { name: "tvm-ffi", version, provider, identity, terms, stand_in: None, addition: None })
            }
        }
    }

    /// The same with this torch, for the variants of `release` that run on `compute`.
    #[must_use]
    pub fn with_torch(mut self, release: Version, compute: Compute, toolchain: TorchToolchain) -> Self {
        self.torch.insert((release, compute), toolchain);
        self
    }

    /// What is to be said of builds of torch that stand in for others without having been compared with them, each once.
    pub fn uncompared(&self) -> Vec<String> {
        let say = |toolchain: &TorchToolchain| {
            let stand_in = toolchain.stand_in.as_ref().filter(|stand_in| stand_in.compared.is_none())?;
            let (version, build) = (&toolchain.version, &stand_in.build);
            Some(format!(
                "headers of another build of torch {version} stand in for those of {version}+{build}, without having been compared: \
                 `--torch-index URL` names an index that has it, and `kiln toolchain add torch=={version}+{build}` pins it"
            ))
        };
        let said: BTreeSet<String> = self.torch.values().filter_map(say).collect();
        said.into_iter().collect()
    }

    /// The same with this tvm-ffi, for the variants of its minor version.
    #[must_use]
    pub fn with_tvm_ffi(mut self, toolchain: TvmFfiToolchain) -> Self {
        self.tvm_ffi.insert(toolchain.version.major_minor(), toolchain);
        self
    }
}
