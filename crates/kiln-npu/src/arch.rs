//! What a component is compiled for.
//!
//! One architecture. `bisheng` compiles for one at a time, and what it makes of a source defines the source's functions for the host, so
//! that the objects for two architectures cannot be in one extension. Who wants both gives each a component of its own, with names of its
//! own: metadata name no architectures of NPUs, and loaders do not choose between them.

use std::str::FromStr;

use kiln_backend::BackendError;

/// What is compiled for when nothing is said.
const DEFAULT: &str = "dav-2201";
/// The architectures that are known, with the products that have them. Source: the table of products in the guide to Ascend C.
const KNOWN: [(&str, &str); 5] = [
    ("dav-1001", "Ascend 910A"),
    ("dav-2002", "Ascend 310P"),
    ("dav-2201", "Atlas A2 and A3"),
    ("dav-3002", "Ascend 310B"),
    ("dav-3510", "Ascend 950"),
];

/// Whether a text has the form of an architecture of NPUs, right or wrong.
pub fn is_arch(text: &str) -> bool {
    text.trim().starts_with("dav")
}

/// What `--arch` asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchRequest(String);

/// Why a text is no `--arch` of NPUs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArchRequestError {
    /// It is no architecture.
    #[error("`--arch` has `{0}`, which is no architecture of Ascend NPUs: `dav-2201` is one")]
    Malformed(String),
    /// It is several.
    #[error("`--arch` has {0}: an extension has device code for one architecture of NPUs")]
    Several(String),
}

impl FromStr for ArchRequest {
    type Err = ArchRequestError;

    fn from_str(text: &str) -> Result<Self, ArchRequestError> {
        let mut entries: Vec<&str> = text.split(',').map(str::trim).collect();
        entries.dedup();
        let is_right = |entry: &&str| {
            let digits = entry.strip_prefix("dav-").unwrap_or_default();
            !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_lowercase())
        };
        if let Some(wrong) = entries.iter().find(|entry| !is_right(entry)) {
            return Err(ArchRequestError::Malformed((*wrong).to_owned()));
        }
        match entries.as_slice() {
            [one] => Ok(Self((*one).to_owned())),
            several => Err(ArchRequestError::Several(several.join(" "))),
        }
    }
}

/// What a component is compiled for, and what is to be said of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) arch: String,
    pub(crate) notes: Vec<String>,
}

/// What a component is compiled for that lists `listed`, or nothing, when `--arch` asks for `request`.
///
/// # Errors
/// [`BackendError::Architectures`] when that is not one architecture.
pub(crate) fn choose(listed: Option<&[String]>, request: Option<&ArchRequest>) -> Result<Choice, BackendError> {
    let mut notes = Vec::new();
    let listed = listed.map(|listed| {
        let mut once: Vec<&str> = Vec::new();
        once.extend(listed.iter().map(String::as_str));
        once.sort_unstable();
        once.dedup();
        once
    });
    let arch = match (listed.as_deref(), request) {
        (None, None) => DEFAULT,
        (None, Some(ArchRequest(asked))) => asked,
        (Some([]), _) => {
            return Err(BackendError::Architectures {
                message: "empty set of architectures: `npu-archs` lists none".to_owned(),
                hint: Some(format!("list one, or leave `npu-archs` out for `{DEFAULT}`")),
            });
        }
        (Some(listed), Some(ArchRequest(asked))) if listed.contains(&asked.as_str()) => asked,
        (Some([one]), asked) => {
            notes.extend(asked.map(|ArchRequest(asked)| format!("`--arch` changes nothing here: `npu-archs` does not have {asked}")));
            one
        }
        (Some(several), _) => return Err(several_listed(several)),
    };
    if !KNOWN.iter().any(|(known, _)| *known == arch) {
        let known: Vec<String> = KNOWN.iter().map(|(known, products)| format!("{known} ({products})")).collect();
        notes.push(format!("{arch} is not among the architectures that are known here, and left to `bisheng`: {}", known.join(", ")));
    }
    Ok(Choice { arch: arch.to_owned(), notes })
}

fn several_listed(several: &[&str]) -> BackendError {
    BackendError::Architectures {
        message: format!(
            "`npu-archs` lists {}: `bisheng` compiles for one architecture, and the objects for several would define the same functions",
            several.join(" ")
        ),
        hint: Some(
            "give each a `[kernel.*]` of its own, whose functions have other names (by a define in `asc-flags`, for instance); `--arch` \
             picks one during development"
                .to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(listed: Option<&[&str]>, request: Option<&str>) -> Result<(String, Vec<String>), String> {
        let listed: Option<Vec<String>> = listed.map(|listed| listed.iter().map(|arch| (*arch).to_owned()).collect());
        let request = request.map(|text| text.parse().unwrap());
        choose(listed.as_deref(), request.as_ref()).map(|choice| (choice.arch, choice.notes)).map_err(|error| error.to_string())
    }

    #[test]
    fn one_architecture_is_compiled_for() {
        let plain = |arch: &str| Ok((arch.to_owned(), Vec::new()));
        assert_eq!(chosen(None, None), plain("dav-2201"));
        assert_eq!(chosen(Some(&["dav-3510"]), None), plain("dav-3510"));
        assert_eq!(chosen(Some(&["dav-3510", "dav-3510"]), None), plain("dav-3510"));
        assert_eq!(chosen(None, Some("dav-2002")), plain("dav-2002"));
        assert_eq!(chosen(Some(&["dav-2201", "dav-3510"]), Some("dav-3510")), plain("dav-3510"));
        let (kept, notes) = chosen(Some(&["dav-2201"]), Some("dav-3510")).unwrap();
        assert_eq!(
            (kept.as_str(), notes.concat().as_str()),
            ("dav-2201", "`--arch` changes nothing here: `npu-archs` does not have dav-3510")
        );
    }

    #[test]
    fn several_or_none_are_errors_before_anything_is_compiled() {
        for request in [None, Some("dav-1001")] {
            let error = chosen(Some(&["dav-3510", "dav-2201"]), request).unwrap_err();
            assert!(error.starts_with("`npu-archs` lists dav-2201 dav-3510: `bisheng` compiles for one architecture"), "{error}");
        }
        assert_eq!(chosen(Some(&[]), None).unwrap_err(), "empty set of architectures: `npu-archs` lists none");
    }

    #[test]
    fn architectures_that_nobody_here_knows_are_left_to_the_compiler() {
        let (arch, notes) = chosen(Some(&["dav-9999"]), None).unwrap();
        assert_eq!(arch, "dav-9999");
        assert!(notes.concat().starts_with("dav-9999 is not among the architectures that are known here"), "{notes:?}");
        for (known, _) in KNOWN {
            assert_eq!(chosen(Some(&[known]), None).unwrap().1, Vec::<String>::new(), "{known}");
        }
    }

    #[test]
    fn requests_are_one_well_written_architecture() {
        assert_eq!(" dav-2201,dav-2201 ".parse::<ArchRequest>().unwrap(), ArchRequest("dav-2201".to_owned()));
        assert!(is_arch(" dav-x") && is_arch("dav2201") && !is_arch("gfx942"));
        for wrong in ["dav", "dav-", "dav2201", "dav-C220", "dav-2201,dav-3510", ""] {
            assert!(wrong.parse::<ArchRequest>().is_err(), "{wrong}");
        }
    }
}
