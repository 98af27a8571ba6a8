//! The JSON form of a project's page (PEP 691).

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use url::Url;

use super::{Files, Listed, digest, resolved};

#[derive(Deserialize)]
struct Page {
    meta: Meta,
    files: Vec<File>,
}

#[derive(Deserialize)]
struct Meta {
    #[serde(rename = "api-version")]
    api_version: String,
}

#[derive(Deserialize)]
struct File {
    filename: String,
    url: String,
    #[serde(default)]
    hashes: BTreeMap<String, String>,
    size: Option<u64>,
    #[serde(rename = "requires-python")]
    requires_python: Option<String>,
    /// False, true, or why.
    #[serde(default)]
    yanked: Value,
    /// False, true, or hashes of the file.
    #[serde(rename = "core-metadata", default)]
    core_metadata: Value,
    /// The same under the name that came first.
    #[serde(rename = "dist-info-metadata", default)]
    dist_info_metadata: Value,
}

/// The files that the page lists. Fails with what is wrong with it.
pub(super) fn files(page: &[u8], base: &Url) -> Result<Files, String> {
    let page: Page = serde_json::from_slice(page).map_err(|cause| format!("its JSON is damaged: {cause}"))?;
    // PEP 691: a new minor version only adds keys, a new major one may change anything.
    if page.meta.api_version.split('.').next() != Some("1") {
        return Err(format!("it speaks version {} of the simple API, not 1", page.meta.api_version.escape_default()));
    }
    let listed = page.files.into_iter().filter_map(|file| {
        let listed = Listed {
            sha256: file.hashes.get("sha256").and_then(|text| digest(text)),
            size: file.size,
            yanked: match file.yanked {
                Value::String(reason) => Some(reason),
                Value::Bool(true) => Some(String::new()),
                _ => None,
            },
            requires_python: file.requires_python,
            metadata: [file.core_metadata, file.dist_info_metadata].iter().any(|said| *said == Value::Bool(true) || said.is_object()),
            ..Listed::at(resolved(base, &file.url)?)
        };
        Some((file.filename, listed))
    });
    Ok(listed.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_resolved_and_digests_kept() {
        let base = Url::parse("https://example.org/simple/torch/").unwrap();
        let page = format!(
            r#"{{"meta":{{"api-version":"1.3"}},"name":"torch","files":[
                {{"filename":"a.whl","url":"../../files/a.whl","hashes":{{"sha256":"{}"}},"size":3,"yanked":false,"requires-python":">=3.10","core-metadata":{{"sha256":"x"}}}},
                {{"filename":"b.whl","url":"https://files.example.org/b.whl","hashes":{{}},"yanked":"broken","requires-python":null}},
                {{"filename":"c.whl","url":"ftp://example.org/c.whl","hashes":{{}}}}]}}"#,
            "AB".repeat(32)
        );
        let files = files(page.as_bytes(), &base).unwrap();
        assert_eq!(files.keys().collect::<Vec<_>>(), ["a.whl", "b.whl"]);
        let a = Listed {
            sha256: Some("ab".repeat(32)),
            size: Some(3),
            requires_python: Some(">=3.10".to_owned()),
            metadata: true,
            ..Listed::at(Url::parse("https://example.org/files/a.whl").unwrap())
        };
        assert_eq!(files["a.whl"], a);
        let b = Listed { yanked: Some("broken".to_owned()), ..Listed::at(Url::parse("https://files.example.org/b.whl").unwrap()) };
        assert_eq!(files["b.whl"], b);
    }

    #[test]
    fn other_answers_are_refused() {
        let base = Url::parse("https://example.org/simple/torch/").unwrap();
        let message = |page: &str| files(page.as_bytes(), &base).unwrap_err();
        assert_eq!(message(r#"{"meta":{"api-version":"2.0"},"files":[]}"#), "it speaks version 2.0 of the simple API, not 1");
        assert_eq!(message("<html>"), "its JSON is damaged: expected value at line 1 column 1");
    }
}
