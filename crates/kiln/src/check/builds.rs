//! The checks of what stands beside the code: metadata, digest, names.

use std::collections::BTreeMap;
use std::fs;

use kiln_abi::FailureKind;
use kiln_format::variant::Variant;
use kiln_format::{Level, Metadata, OpsId};

use super::remark::{Outcome, Remark, RemarkKind};
use crate::backends::vendor;
use crate::build_error::chain;
use crate::hash::{HashError, VariantDir, check_plain};
use crate::package::METADATA;
use crate::small_file;

macro_rules! rules {
    ($($(#[doc = $doc:literal])+ $name:ident = $code:literal,)+) => {
        /// A rule about a built variant as a whole.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum BuildRule {
            $($(#[doc = $doc])+ $name,)+
        }

        impl BuildRule {
            /// Every rule, in the order of the manual.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// Its code.
            pub const fn code(self) -> &'static str {
                match self { $(Self::$name => $code,)+ }
            }

            /// The rule in one sentence.
            pub const fn summary(self) -> &'static str {
                match self { $(Self::$name => concat!($($doc),+).trim_ascii(),)+ }
            }
        }
    };
}

rules! {
    /// The directory's name is a variant's, written as loaders write it.
    VariantName = "variant-name",
    /// The metadata can be read by every loader.
    Metadata = "metadata",
    /// The metadata name the backend that the directory's name says.
    MetadataBackend = "metadata-backend",
    /// The ops id is of the kernel and the backend, and the shared object has its name.
    MetadataId = "metadata-id",
    /// The digest is that of the files.
    Digest = "digest",
    /// All variants of a kernel have the same name, version and licence.
    Consistent = "consistent",
    /// There is no compiled Python.
    Bytecode = "bytecode",
    /// The variant holds plain files, which are what others get.
    PlainFiles = "plain-files",
    /// There is device code for all architectures that the metadata name.
    MetadataArchs = "metadata-archs",
    /// There is device code that the devices of the variant can take.
    DeviceCode = "device-code",
}

/// Checks the variants of one output directory, each by itself and all together.
pub(super) fn check_builds(variants: &[VariantDir], outcome: &mut Outcome) {
    let mut first: Option<(String, Metadata)> = None;
    let mut ids: BTreeMap<&'static str, (String, String)> = BTreeMap::new();
    for dir in variants {
        outcome.files.push(metadata_of(dir));
        let Some(metadata) = check_one(dir, outcome) else { continue };
        let backend = metadata.backend.kind.as_str();
        match ids.get(backend) {
            Some((other, id)) if *id != metadata.id => {
                let detail = format!("the ops id is `{}`, and that of `{other}`, of the same backend, is `{id}`", metadata.id);
                finding(outcome, BuildRule::Consistent, dir, detail, "build all variants of one state of the sources");
            }
            Some(_) => {}
            None => {
                ids.insert(backend, (dir.name.clone(), metadata.id.clone()));
            }
        }
        match &first {
            None => first = Some((dir.name.clone(), metadata)),
            Some((other, before)) => {
                for (what, here, there) in [
                    ("name", metadata.name.as_str().to_owned(), before.name.as_str().to_owned()),
                    ("version", metadata.version.to_string(), before.version.to_string()),
                    ("licence", metadata.license.clone(), before.license.clone()),
                ] {
                    if here != there {
                        let detail = format!("the {what} is `{here}`, and that of `{other}` is `{there}`");
                        finding(outcome, BuildRule::Consistent, dir, detail, "build all variants of one state of the sources");
                    }
                }
            }
        }
    }
}

/// Checks one variant and gives its metadata, if they can be read.
fn check_one(dir: &VariantDir, outcome: &mut Outcome) -> Option<Metadata> {
    let variant = match dir.name.parse::<Variant>() {
        Ok(variant) if variant.name() == dir.name => Some(variant),
        Ok(variant) => {
            let detail = format!("the directory is written `{}`", variant.name());
            finding(outcome, BuildRule::VariantName, dir, detail, "rename it, or build it again");
            Some(variant)
        }
        Err(error) => {
            finding(outcome, BuildRule::VariantName, dir, error.to_string(), "no loader finds it: remove it, or build it again");
            None
        }
    };
    bytecode(dir, outcome);
    plain_files(dir, outcome);
    let path = dir.path.join(METADATA);
    let text = match small_file::read_text(&path) {
        Ok(text) => text,
        Err(cause) => {
            outcome.remarks.push(unreadable(dir, cause.to_string()));
            return None;
        }
    };
    let metadata = match Metadata::read(&text) {
        Ok(metadata) => metadata,
        Err(error) => {
            let detail = chain(&error);
            finding(outcome, BuildRule::Metadata, dir, detail, "build the variant again");
            return None;
        }
    };
    if let Some(backend) = variant.as_ref().and_then(Variant::backend)
        && backend != metadata.backend.kind
    {
        let detail = format!("the metadata are of backend {}, and the directory is named for {backend}", metadata.backend.kind);
        finding(outcome, BuildRule::MetadataBackend, dir, detail, "build the variant again");
    }
    id(dir, variant.as_ref(), &metadata, outcome);
    if let Some(variant) = &variant {
        device_code(dir, variant, &metadata, outcome);
    }
    match &metadata.digest {
        None => finding(outcome, BuildRule::Digest, dir, "the metadata have no digest".to_owned(), "`kiln hash` writes it"),
        Some(digest) => match digest.validate(&dir.path) {
            Ok(violations) => {
                for violation in violations {
                    finding(
                        outcome,
                        BuildRule::Digest,
                        dir,
                        violation.to_string(),
                        "build the variant again, or write the digest anew with `kiln hash`",
                    );
                }
            }
            Err(error) => outcome.remarks.push(unreadable(dir, chain(&error))),
        },
    }
    Some(metadata)
}

fn id(dir: &VariantDir, variant: Option<&Variant>, metadata: &Metadata, outcome: &mut Outcome) {
    let id = match OpsId::parse(&metadata.id) {
        Ok(id) => id,
        Err(error) => return finding(outcome, BuildRule::MetadataId, dir, error.to_string(), "build the variant again"),
    };
    let start = format!("_{}_{}_", metadata.name.python_name(), metadata.backend.kind);
    if !id.as_str().starts_with(&start) {
        let detail = format!("the ops id is `{id}`: that of this kernel and backend begins with `{start}`");
        finding(outcome, BuildRule::MetadataId, dir, detail, "build the variant again");
    }
    if let Some(extension) = variant.and_then(|variant| variant.extension_name(&id))
        && !dir.path.join(&extension).is_file()
    {
        let detail = format!("the ops id is `{id}`, and there is no `{extension}`");
        finding(outcome, BuildRule::MetadataId, dir, detail, "build the variant again");
    }
}

fn bytecode(dir: &VariantDir, outcome: &mut Outcome) {
    let mut pending = vec![dir.path.clone()];
    let mut found = Vec::new();
    while let Some(at) = pending.pop() {
        let Ok(entries) = fs::read_dir(&at) else { continue };
        for entry in entries.flatten() {
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) && name != "__pycache__" {
                pending.push(path);
            } else if name == "__pycache__" || name.ends_with(".pyc") {
                found.push(path.strip_prefix(&dir.path).unwrap_or(&path).display().to_string());
            }
        }
    }
    found.sort();
    for path in found {
        finding(
            outcome,
            BuildRule::Bytecode,
            dir,
            format!("there is compiled Python: `{path}`"),
            "remove it: it is of one Python and not in the digest",
        );
    }
}

/// Loaders choose by the architectures in the metadata, and find out when a kernel is called that there is no code.
fn device_code(dir: &VariantDir, variant: &Variant, metadata: &Metadata, outcome: &mut Outcome) {
    let (Variant::Arch(arch), Ok(id)) = (variant, OpsId::parse(&metadata.id)) else { return };
    // One that is not there, or cannot be read, is told by other rules.
    let Some(path) = variant.extension_name(&id).map(|name| dir.path.join(name)).filter(|path| path.is_file()) else { return };
    let Ok(file) = fs::read(path) else { return };
    let archs = &metadata.backend.archs;
    let named = archs.as_deref().unwrap_or_default();
    if let Err(wrong) = vendor(arch.compute.backend()).map_or(Ok(()), |vendor| vendor.verify_recorded(arch.compute, named, &file)) {
        let (rule, detail) = match archs {
            Some(archs) => (BuildRule::MetadataArchs, format!("the metadata name {}: {}", archs.join(", "), wrong.message)),
            None => (BuildRule::DeviceCode, wrong.message),
        };
        finding(outcome, rule, dir, detail, "build the variant again");
    }
}

/// A digest says nothing of what a link out of the variant leads to elsewhere.
fn plain_files(dir: &VariantDir, outcome: &mut Outcome) {
    match check_plain(&dir.path, &dir.path) {
        Ok(()) => {}
        Err(HashError::NoFile { path, why }) => {
            let shown = path.strip_prefix(&dir.path).unwrap_or(&path).display();
            finding(outcome, BuildRule::PlainFiles, dir, format!("`{shown}` {why}"), "put a file in its place, or remove it");
        }
        Err(error) => outcome.remarks.push(unreadable(dir, chain(&error))),
    }
}

fn finding(outcome: &mut Outcome, rule: BuildRule, dir: &VariantDir, detail: String, fix: &str) {
    outcome.remarks.push(Remark {
        kind: RemarkKind::Finding,
        rule: rule.code().to_owned(),
        level: Level::Error,
        file: metadata_of(dir),
        line: None,
        column: None,
        symbol: None,
        detail,
        evidence: None,
        caused_by: Vec::new(),
        fix: Some(fix.to_owned()),
    });
}

fn unreadable(dir: &VariantDir, cause: String) -> Remark {
    Remark::failure(FailureKind::Unreadable.code(), metadata_of(dir), cause, None)
}

fn metadata_of(dir: &VariantDir) -> String {
    format!("{}/{METADATA}", dir.name)
}
