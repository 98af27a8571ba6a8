//! An index that is a directory of this machine.

use std::fs;
use std::io;
use std::path::Path;

use url::Url;

use super::{Files, Listed, normalized, of_project, page};
use crate::error::Error;
use crate::http::{Client, IndexUrl};

/// Names of pages, the first that exists counts.
const PAGES: [&str; 3] = ["index.json", "index.html", "index.htm"];

/// The files of `project` below `dir`, which may also be a page: those of the project's own directory, else the wheels of
/// the project in `dir` itself. A page in a directory says what is in it, in place of its listing.
pub(super) fn files(client: &Client<'_>, index: &IndexUrl, dir: &Path, project: &str) -> Result<Files, Error> {
    if index.is_page() && dir.is_file() {
        return Ok(of_project(page(client, index, index.url(), project)?, project));
    }
    let entries = entries(dir)?;
    let own = entries.iter().find(|name| normalized(name) == project && dir.join(name).is_dir());
    let files = match own {
        Some(name) => below(client, index, &dir.join(name), project)?,
        None => of_project(below(client, index, dir, project)?, project),
    };
    if files.is_empty() { Err(Error::NoProject { project: project.to_owned(), index: index.to_string() }) } else { Ok(files) }
}

/// The files that a page in `dir` lists, or that are in it.
fn below(client: &Client<'_>, index: &IndexUrl, dir: &Path, project: &str) -> Result<Files, Error> {
    if let Some(name) = PAGES.into_iter().map(|name| dir.join(name)).find(|page| page.is_file()) {
        let url = address(&name)?;
        return page(client, index, &url, project);
    }
    let files = entries(dir)?.into_iter().filter(|name| dir.join(name).is_file());
    files.map(|name| address(&dir.join(&name)).map(|url| (name, Listed::at(url)))).collect()
}

fn address(path: &Path) -> Result<Url, Error> {
    let wrong = |()| Error::Store { action: "read", path: path.to_owned(), source: io::Error::other("it is a relative path") };
    Url::from_file_path(path).map_err(wrong)
}

/// Names in a directory that are text, sorted.
fn entries(dir: &Path) -> Result<Vec<String>, Error> {
    let failed = |cause: io::Error| Error::IndexDir { path: dir.to_owned(), source: cause };
    let mut names = Vec::new();
    for entry in fs::read_dir(dir).map_err(failed)? {
        names.extend(entry.map_err(failed)?.file_name().into_string());
    }
    names.sort();
    Ok(names)
}
