//! The HTML form of a project's page (PEP 503): a list of anchors, read without an HTML parser.

use url::Url;

use super::{Files, Listed, digest, resolved};
use crate::http::unescaped;

/// The files that the page at `base` links to. What is no link to a file is skipped.
pub(super) fn files(page: &str, base: &Url) -> Files {
    let mut base = base.clone();
    let mut listed = Files::new();
    let mut rest = page;
    while let Some((_, after)) = rest.split_once('<') {
        if let Some(comment) = after.strip_prefix("!--") {
            rest = comment.split_once("-->").map_or("", |(_, after)| after);
            continue;
        }
        let Some((tag, after)) = tag(after) else { break };
        rest = after;
        let Some(href) = tag.attribute("href") else { continue };
        match tag.name.as_str() {
            "base" => base = resolved(&base, &href).unwrap_or(base),
            "a" => listed.extend(resolved(&base, &href).and_then(|url| file(url, &tag))),
            _ => {}
        }
    }
    listed
}

/// The file behind a link; its digest stands in the fragment, what else is said of it in attributes.
fn file(mut url: Url, tag: &Tag) -> Option<(String, Listed)> {
    let sha256 = url.fragment().and_then(|fragment| fragment.strip_prefix("sha256=")).and_then(digest);
    url.set_fragment(None);
    let name = url.path_segments()?.next_back().filter(|name| !name.is_empty())?;
    let name = String::from_utf8_lossy(&unescaped(name)).into_owned();
    let metadata =
        ["data-core-metadata", "data-dist-info-metadata"].iter().any(|name| tag.attribute(name).is_some_and(|said| said != "false"));
    let (yanked, requires_python) = (tag.attribute("data-yanked"), tag.attribute("data-requires-python"));
    Some((name, Listed { sha256, yanked, requires_python, metadata, ..Listed::at(url) }))
}

/// A start tag.
struct Tag {
    name: String,
    attributes: Vec<(String, String)>,
}

impl Tag {
    /// The value of an attribute, references decoded.
    fn attribute(&self, name: &str) -> Option<String> {
        self.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| decoded(value))
    }
}

/// Reads the tag that begins `text` (after its `<`); gives what follows it too.
fn tag(text: &str) -> Option<(Tag, &str)> {
    let name_len = text.find(|letter: char| letter.is_whitespace() || letter == '>').unwrap_or(text.len());
    let (name, mut rest) = text.split_at(name_len);
    let mut tag = Tag { name: name.to_ascii_lowercase(), attributes: Vec::new() };
    loop {
        rest = rest.trim_start_matches(|letter: char| letter.is_whitespace() || letter == '/');
        if let Some(after) = rest.strip_prefix('>') {
            return Some((tag, after));
        }
        let key_len = rest.find(|letter: char| letter.is_whitespace() || matches!(letter, '=' | '>' | '/')).filter(|len| *len > 0)?;
        let (key, after) = rest.split_at(key_len);
        let Some(value) = after.trim_start().strip_prefix('=') else {
            // An attribute without a value has an empty one.
            tag.attributes.push((key.to_ascii_lowercase(), String::new()));
            rest = after;
            continue;
        };
        let value = value.trim_start();
        let (value, after) = match value.chars().next()? {
            quote @ ('"' | '\'') => value.get(1..)?.split_once(quote)?,
            _ => value.split_at(value.find(|letter: char| letter.is_whitespace() || letter == '>')?),
        };
        tag.attributes.push((key.to_ascii_lowercase(), value.to_owned()));
        rest = after;
    }
}

/// Text with its character references replaced.
fn decoded(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        plain.push_str(before);
        let reference = after.split_once(';').and_then(|(name, after)| Some((character(name)?, after)));
        match reference {
            Some((letter, after)) => {
                plain.push(letter);
                rest = after;
            }
            None => {
                plain.push('&');
                rest = after;
            }
        }
    }
    plain.push_str(rest);
    plain
}

/// The character that a reference stands for.
fn character(name: &str) -> Option<char> {
    match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16),
                None => number.parse(),
            };
            char::from_u32(code.ok()?)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchors_are_read_in_their_many_forms() {
        let base = Url::parse("https://example.org/simple/torch/").unwrap();
        let digest = "cd".repeat(32);
        let page = format!(
            r##"<!DOCTYPE html><html><head><!-- <a href="no.whl"> --><base href="/mirror/torch/"></head><body>
            <A HREF='../../files/a.whl#sha256={digest}' data-requires-python="&gt;=3.10">a.whl</A><br/>
            <a data-yanked data-core-metadata="true" href=b%2Bcu130.whl>b</a>
            <a class="x" href="https://files.example.org/c.whl?x=1&amp;y=2#md5=1">c.whl</a>
            <a href="">self</a> <a name="x">no</a> <a href="mailto:a@b">mail</a> < a"##
        );
        let files = files(&page, &base);
        let shown: Vec<String> = files
            .iter()
            .map(|(name, file)| {
                format!("{name} {} {} {:?} {:?} {}", file.url, file.sha256.is_some(), file.yanked, file.requires_python, file.metadata)
            })
            .collect();
        insta::assert_snapshot!(shown.join("\n"), @r#"
        a.whl https://example.org/files/a.whl true None Some(">=3.10") false
        b+cu130.whl https://example.org/mirror/torch/b%2Bcu130.whl false Some("") None true
        c.whl https://files.example.org/c.whl?x=1&y=2 false None None false
        "#);
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_fail(page in "(<a|<base|href|=|\"|'|&amp;|&#x|;|>|<!--|/|[a-z%é ])*") {
            let base = Url::parse("https://example.org/simple/torch/").unwrap();
            files(&page, &base);
        }
    }
}
