//! The JSON form of a project's page (PEP 691).

use std::collections::BTreeMap;

use serde::Deserialize;
use url::Url;

use super::{Listed, digest, resolved};

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
}

/// The files that the page lists. Fails with what is wrong with it.
pub(super) fn files(page: &[u8], base: &Url) -> Result<BTreeMap<String, Listed>, String> {
    let page: Page = serde_json::from_slice(page).map_err(|cause| format!("its JSON is damaged: {cause}"))?;
    // PEP 691: a new minor version only adds keys, a new major one may change anything.
    if page.meta.api_version.split('.').next() != Some("1") {
        return Err(format!("it speaks version {} of the simple API, not 1", page.meta.api_version.escape_default()));
    }
    let listed = page.files.into_iter().filter_map(|file| {
        let sha256 = file.hashes.get("sha256").and_then(|text| digest(text));
        resolved(base, &file.url).map(|url| (file.filename, Listed { url, sha256 }))
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
                {{"filename":"a.whl","url":"../../files/a.whl","hashes":{{"sha256":"{}"}},"size":3,"yanked":false}},
                {{"filename":"b.whl","url":"https://files.example.org/b.whl","hashes":{{}}}},
                {{"filename":"c.whl","url":"ftp://example.org/c.whl","hashes":{{}}}}]}}"#,
            "AB".repeat(32)
        );
        let files = files(page.as_bytes(), &base).unwrap();
        assert_eq!(files.keys().collect::<Vec<_>>(), ["a.whl", "b.whl"]);
        assert_eq!(files["a.whl"], Listed { url: Url::parse("https://example.org/files/a.whl").unwrap(), sha256: Some("ab".repeat(32)) });
        assert_eq!(files["b.whl"].sha256, None);
    }

    #[test]
    fn other_answers_are_refused() {
        let base = Url::parse("https://example.org/simple/torch/").unwrap();
        let message = |page: &str| files(page.as_bytes(), &base).unwrap_err();
        assert_eq!(message(r#"{"meta":{"api-version":"2.0"},"files":[]}"#), "it speaks version 2.0 of the simple API, not 1");
        assert_eq!(message("<html>"), "its JSON is damaged: expected value at line 1 column 1");
    }
}
