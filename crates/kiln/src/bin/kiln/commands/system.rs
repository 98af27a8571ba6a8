//! What commands take from the system, by the command line, `kiln.toml` and the environment.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use kiln::backends::VENDORS;
use kiln::build_error::{BuildError, causes};
use kiln::frameworks::TorchSource;
use kiln::host::HostSource;
use kiln::matrix::Filters;
use kiln::settings_file;
use kiln_backend::{Ask, CompilerAt, Sources};
use kiln_cuda::CudaToolkits;
use kiln_format::{BackendName, Version};
use kiln_graph::Interrupt;
use kiln_toolchain::Provisioner;
use kiln_toolchain::host::{self, Choice, HostCompiler, HostError, HostSearch};
use kiln_toolchain::system::{self, SystemError, SystemSearch, SystemTorch};

use crate::args::System;
use crate::exit::{Exit, Failure};
use crate::settings::Settings;

/// Where torch comes from.
pub(super) fn torch_source(args: &System, settings: &Settings, cache_dir: &Path, interrupt: &Interrupt) -> Result<TorchSource, Failure> {
    let Some(python) = &args.torch_from else { return Ok(TorchSource::Wheels) };
    let found = torch_of(python, settings, cache_dir, interrupt).map_err(|error| match error {
        SystemError::Interrupted => Failure { exit: Exit::Interrupted, ..Failure::new("interrupted", error.to_string()) },
        _ => Failure { causes: causes(&error), hint: error.hint(), ..Failure::new("torch-from", error.to_string()) },
    })?;
    Ok(TorchSource::System(Box::new(found.toolchain)))
}

/// Refuses `--torch` beside `--torch-from` with another torch: variants would be named after one and compiled with the other.
pub(super) fn fits(torch: &TorchSource, filters: &Filters) -> Result<(), Failure> {
    match torch {
        TorchSource::System(installed) => is_wanted(&installed.version, &filters.torch),
        TorchSource::Wheels => Ok(()),
    }
}

fn is_wanted(installed: &Version, wanted: &[Version]) -> Result<(), Failure> {
    match wanted.iter().find(|wanted| wanted.major_minor() != installed.major_minor()) {
        None => Ok(()),
        Some(other) => Err(Failure::usage(format!("`--torch {other}`: the Python of `--torch-from` has torch {installed}"))
            .hint("leave out one of the two options")),
    }
}

/// The torch of a Python.
pub(super) fn torch_of(python: &Path, settings: &Settings, cache_dir: &Path, interrupt: &Interrupt) -> Result<SystemTorch, SystemError> {
    system::torch_from(&SystemSearch {
        python,
        path: settings.environment.get("PATH").unwrap_or_default().as_ref(),
        ambient: &settings.process_ambient(),
        cache_dir,
        limit: system::ANSWER_LIMIT,
        interrupt,
    })
}

/// The directories of toolkits that are to be used.
pub(super) fn named(args: &System, settings: &Settings) -> BTreeMap<BackendName, PathBuf> {
    let options = [(BackendName::Cuda, &args.cuda_from), (BackendName::Rocm, &args.rocm_from)];
    let given = options.into_iter().filter_map(|(backend, dir)| Some((backend, dir.as_ref()?)));
    given.map(|(backend, dir)| (backend, settings.environment.current_dir.join(dir))).collect()
}

/// Where vendors' toolkits may come from.
pub(super) fn sources<'a>(
    named: &'a BTreeMap<BackendName, PathBuf>,
    settings: &'a Settings,
    provisioner: &'a Provisioner<'a>,
    cache_dir: &'a Path,
    compiler_at: &'a CompilerAt<'a>,
    ask: &'a Ask<'a>,
) -> Sources<'a> {
    Sources { named, environment: &settings.environment.variables, cache_dir, compiler_at, ask, provisioner }
}

/// Refuses a named directory that is no toolkit.
pub(super) fn check_named(sources: &Sources<'_>) -> Result<(), BuildError> {
    for vendor in VENDORS {
        vendor.check_named(sources)?;
    }
    Ok(())
}

/// Refuses a named directory that is no toolkit; one of CUDA that is chooses the variants, unless `filters` do.
pub(super) fn take_named(sources: &Sources<'_>, filters: &mut Filters) -> Result<(), BuildError> {
    check_named(sources)?;
    if sources.named(BackendName::Cuda).is_some() && filters.cuda.is_empty() {
        filters.cuda = CudaToolkits.of_system(sources).into_iter().map(Version::from).collect();
    }
    Ok(())
}

/// Where the host compiler comes from: that of the option, else of `kiln.toml`, else of the two variables that may choose one, else the first on `PATH`.
pub(super) fn host(
    args: &System,
    settings: &Settings,
    kiln_toml: &settings_file::Settings,
    cache_dir: &Path,
    interrupt: &Interrupt,
) -> HostSource {
    let named = |value: String, origin: &str| Choice { value, origin: origin.to_owned() };
    let option = args.cxx.as_ref().map(|cxx| named(cxx.clone(), "--cxx"));
    let from_file = || kiln_toml.cxx.as_ref().map(|cxx| named(cxx.value.clone(), "kiln.toml: build.cxx"));
    let from_variable = |name: &str| settings.environment.get(name).map(|value| named(value.to_owned(), name));
    let cxx = option.or_else(from_file).or_else(|| from_variable("CXX"));
    host_source(cxx, from_variable("CC"), settings, cache_dir, interrupt)
}

/// The compiler at `path`.
pub(super) fn compiler_at(path: &Path, settings: &Settings, cache_dir: &Path, interrupt: &Interrupt) -> Result<HostCompiler, HostError> {
    let choice = Choice { value: path.display().to_string(), origin: "PATH".to_owned() };
    let HostSource { search, known } = host_source(Some(choice), None, settings, cache_dir, interrupt);
    Ok(host::find(&search, &known)?.compiler)
}

fn host_source(cxx: Option<Choice>, cc: Option<Choice>, settings: &Settings, cache_dir: &Path, interrupt: &Interrupt) -> HostSource {
    let path = settings.environment.get("PATH").unwrap_or_default().into();
    let scratch = Some(settings.environment.temporary_dir());
    let (machine, ambient) = (Some(settings.target.machine()), settings.process_ambient());
    let search = HostSearch { cxx, cc, machine, path, ambient, scratch, limit: None, interrupt: interrupt.clone() };
    HostSource { search, known: known_compilers(cache_dir) }
}

/// The file that keeps what is known of compilers.
fn known_compilers(cache_dir: &Path) -> PathBuf {
    cache_dir.join("host-compilers-v1.json")
}

#[cfg(test)]
mod tests {
    use super::{Version, is_wanted};

    #[test]
    fn an_installed_torch_is_used_for_its_own_release_only() {
        let version = |text: &str| Version::parse(text).unwrap();
        let installed = version("2.13.0");
        assert!(is_wanted(&installed, &[]).is_ok() && is_wanted(&installed, &[version("2.13")]).is_ok());
        let refused = is_wanted(&installed, &[version("2.13"), version("2.15")]).unwrap_err();
        assert_eq!(refused.message, "`--torch 2.15`: the Python of `--torch-from` has torch 2.13.0");
    }
}
