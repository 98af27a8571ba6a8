//! CUDA toolkits: sets of wheels that belong together.
//!
//! A toolkit is a release of the meta package `cuda-toolkit`, whose metadata says which version of each component it has.
//! Components of different releases do not mix. All of them unpack into one tree below [`CudaToolkit::ROOT`].

use kiln_format::Version;
use serde::Deserialize;

use super::pin::{checked, no};
use crate::error::Error;
use crate::names::LibraryExports;
use crate::part::{Members, Part, WheelPin};

/// What a member of a toolkit's wheel is needed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CudaUse {
    /// Compiling any kernel, and linking with the runtime library.
    Compile,
    /// The link step of relocatable device code.
    DeviceLink,
    /// Headers that `ATen/cuda/CUDAContext.h` of torch includes.
    TorchHeaders,
    /// Looking into what was compiled.
    Inspect,
}

impl CudaUse {
    /// Every use, in the order of the catalog.
    pub const ALL: [Self; 4] = [Self::Compile, Self::DeviceLink, Self::TorchHeaders, Self::Inspect];

    /// Its word in the catalog.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Compile => "compile",
            Self::DeviceLink => "device-link",
            Self::TorchHeaders => "torch-headers",
            Self::Inspect => "inspect",
        }
    }
}

/// Members of a wheel that one use needs. The same in all versions; paths are relative to [`CudaToolkit::ROOT`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CudaMembers {
    /// The project on the index, such as `nvidia-cuda-nvcc`.
    pub project: String,
    /// What they are needed for.
    pub used_for: CudaUse,
    /// Whole directories, ending in a slash.
    pub dirs: Vec<String>,
    /// Single files that all platforms have.
    pub files: Vec<String>,
    /// Single files of the toolkits for Linux.
    pub linux_files: Vec<String>,
    /// Single files of the toolkits for Windows.
    pub windows_files: Vec<String>,
    /// Programs, without the extension that they have on Windows: files that need the run bit.
    pub programs: Vec<String>,
}

/// A CUDA toolkit for the machine that it runs on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CudaToolkit {
    /// Release of the toolkit, such as `13.2.2`.
    pub version: Version,
    /// What its programs run on, such as `linux-x86_64`.
    pub platform: String,
    /// The newest major version of gcc that its headers accept.
    pub gcc: u32,
    /// The newest major version of clang that its headers accept.
    pub clang: u32,
    /// The virtual architectures that nvcc lists, as numbers (`75` for `compute_75`), ascending.
    pub archs: Vec<u32>,
    /// The license that all of its wheels name.
    pub license: String,
    /// Its wheels.
    pub wheels: Vec<WheelPin>,
    /// Name of the data file that holds the names its runtime library exports; none where no extension links with it.
    pub names: Option<String>,
}

/// An entry of `[[cuda]]` as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawCuda {
    version: String,
    platform: String,
    gcc: u32,
    clang: u32,
    archs: Vec<u32>,
    license: String,
    names: Option<String>,
    wheel: Vec<RawWheel>,
}

/// An entry of `[[cuda.wheel]]` as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawWheel {
    project: String,
    file: String,
    size: u64,
    sha256: String,
    record_sha256: String,
}

/// An entry of `[[cuda-members]]` as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawMembers {
    project: String,
    r#use: String,
    #[serde(default)]
    dirs: Vec<String>,
    #[serde(default)]
    files: Vec<String>,
    #[serde(default, rename = "linux-files")]
    linux_files: Vec<String>,
    #[serde(default, rename = "windows-files")]
    windows_files: Vec<String>,
    #[serde(default)]
    programs: Vec<String>,
}

impl CudaToolkit {
    /// Where every wheel of a toolkit of CUDA 13 puts its files.
    pub const ROOT: &'static str = "nvidia/cu13/";
    /// No selection of one wheel is near this size; a damaged one must not unpack without end.
    const MAX_SIZE: u64 = 1 << 30;

    /// What its runtime library exports; none where the catalog has no names of it.
    ///
    /// # Errors
    /// When the compiled-in data is damaged; the tests see to it that it is not.
    pub fn exports(&self) -> Result<Vec<LibraryExports>, Error> {
        self.names.as_deref().map_or(Ok(Vec::new()), crate::names::of_catalog)
    }

    /// What a program, such as `bin/nvcc`, is called in its tree.
    pub fn program(&self, program: &str) -> String {
        let extension = if self.is_windows() { ".exe" } else { "" };
        format!("{program}{extension}")
    }

    /// Its run-time library alone, for a process that loads kernels, and where that lies in the tree; none where no extension links
    /// with it.
    pub fn runtime_part(&self) -> Option<(Part, &'static str)> {
        let library = "lib/libcudart.so.13";
        let wheel = self.wheels.iter().find(|wheel| wheel.project == "nvidia-cuda-runtime")?;
        if self.is_windows() || self.names.is_none() {
            return None;
        }
        let members = Members { files: vec![format!("{}{library}", Self::ROOT)], max_size: Self::MAX_SIZE, ..Members::default() };
        Some((Part { strip: Self::ROOT.to_owned(), ..Part::whole(wheel.clone(), members) }, library))
    }

    /// The part of one of its wheels that `members` name, to be put into one tree with the others.
    pub(super) fn part(&self, wheel: &WheelPin, members: &[&CudaMembers]) -> Part {
        let rooted = |path: &str| format!("{}{path}", Self::ROOT);
        let own = |members: &CudaMembers| if self.is_windows() { members.windows_files.clone() } else { members.linux_files.clone() };
        let programs: Vec<String> =
            members.iter().flat_map(|members| &members.programs).map(|program| rooted(&self.program(program))).collect();
        let files = members.iter().flat_map(|members| members.files.iter().cloned().chain(own(members)));
        let members = Members {
            dirs: members.iter().flat_map(|members| &members.dirs).map(|dir| rooted(dir)).collect(),
            files: files.map(|file| rooted(&file)).chain(programs.iter().cloned()).collect(),
            programs,
            max_size: Self::MAX_SIZE,
        };
        Part { strip: Self::ROOT.to_owned(), ..Part::whole(wheel.clone(), members) }
    }

    fn is_windows(&self) -> bool {
        self.platform.starts_with("windows-")
    }
}

/// Checks one entry of `[[cuda]]`.
pub(super) fn toolkit(raw: RawCuda) -> Result<CudaToolkit, Error> {
    let place = format!("CUDA {} for {}", raw.version, raw.platform);
    let wheel = |raw: RawWheel| {
        let RawWheel { project, file, size, sha256, record_sha256 } = raw;
        checked(WheelPin { project, file, size, sha256, record_sha256 }, &place)
    };
    Ok(CudaToolkit {
        version: Version::parse(&raw.version).map_err(|_| no(&place, &raw.version, "version"))?,
        wheels: raw.wheel.into_iter().map(wheel).collect::<Result<_, _>>()?,
        platform: raw.platform,
        gcc: raw.gcc,
        clang: raw.clang,
        archs: raw.archs,
        license: raw.license,
        names: raw.names,
    })
}

/// Checks one entry of `[[cuda-members]]`.
pub(super) fn members(raw: RawMembers) -> Result<CudaMembers, Error> {
    let place = format!("members of {}", raw.project);
    let used_for = CudaUse::ALL.into_iter().find(|known| known.as_str() == raw.r#use);
    if let Some(dir) = raw.dirs.iter().find(|dir| !dir.ends_with('/')) {
        return Err(no(&place, dir, "directory"));
    }
    Ok(CudaMembers {
        used_for: used_for.ok_or_else(|| no(&place, &raw.r#use, "use"))?,
        project: raw.project,
        dirs: raw.dirs,
        files: raw.files,
        linux_files: raw.linux_files,
        windows_files: raw.windows_files,
        programs: raw.programs,
    })
}
