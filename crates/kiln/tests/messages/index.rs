//! Package indexes that are missing, down or wrong.

use kiln_test_server::{Ending, Fault, FixtureServer, Request, Response, Server, Target};
use kiln_toolchain::{Catalog, WheelPin};

use crate::Place;
use crate::place::PLATFORM;

pub(crate) const FETCH: [&str; 3] = ["toolchain", "fetch", "torch==2.13.0"];

/// Fetches through `server`, which goes wrong; nothing may be left in the store.
fn fetch_from(server: &FixtureServer) -> String {
    let mut place = Place::without_torch();
    place.env("KILN_INDEX_URL", &server.index());
    let said = place.say(&FETCH);
    let trees = place.path("cache/toolchains-v1/trees");
    assert!(!trees.exists() || std::fs::read_dir(trees).unwrap().next().is_none(), "{said}");
    said
}

/// The wheel that is fetched, as the catalog pins it.
pub(crate) fn pinned() -> WheelPin {
    let catalog = Catalog::embedded().unwrap();
    catalog.releases().iter().find(|r| r.version.to_string() == "2.13.0" && r.platform == PLATFORM).unwrap().wheel.clone()
}

/// A server that lists the pinned wheel, with its right digest, and has these bytes for it.
fn server(bytes: &[u8]) -> FixtureServer {
    let server = FixtureServer::start().unwrap();
    let wheel = pinned();
    server.add_file("torch", &wheel.file, bytes.to_vec(), Some(wheel.sha256));
    server
}

#[test]
fn no_index_at_all() {
    let place = Place::without_torch();
    insta::assert_snapshot!(place.say(&FETCH), @"
    exit code 1
    --- stderr ---
    error[no-index]: no package index is configured
    hint: give one with `--index URL` or in `[index]` of `kiln.toml`; asked in vain:
      `--index`
      `kiln.toml`
      `KILN_INDEX_URL`
      `UV_DEFAULT_INDEX`
      `PIP_INDEX_URL`
      pip's configuration files
      the installed Python's pip: there is no `python3` on PATH
    ");
    place.script("bin/python3", "echo 'No module named pip' >&2\nexit 1\n");
    insta::assert_snapshot!(place.say(&FETCH), @"
    exit code 1
    --- stderr ---
    error[no-index]: no package index is configured
    hint: give one with `--index URL` or in `[index]` of `kiln.toml`; asked in vain:
      `--index`
      `kiln.toml`
      `KILN_INDEX_URL`
      `UV_DEFAULT_INDEX`
      `PIP_INDEX_URL`
      pip's configuration files
      the installed Python's pip: `[dir]/bin/python3` says: No module named pip
    ");
}

/// An option that says nothing is a mistake, a variable that says nothing is not set.
#[test]
fn nothing_where_an_address_should_be() {
    let mut place = Place::without_torch();
    let run = place.run(&["--index", "", "toolchain", "fetch", "torch==2.13.0"]);
    insta::assert_snapshot!(run, @"
    exit code 2
    --- stderr ---
    error[usage]: `--index` is empty
    hint: name a URL or the path of a directory, or leave it out to take the index that pip takes
    ");
    let run = place.run(&["--torch-index", " ", "toolchain", "list"]);
    insta::assert_snapshot!(run, @"
    exit code 2
    --- stderr ---
    error[usage]: `--torch-index` is empty
    hint: name a URL or the path of a directory, or leave it out to take the builds of torch that the package index has
    ");
    for empty in ["", " "] {
        for name in ["KILN_INDEX_URL", "UV_DEFAULT_INDEX", "PIP_INDEX_URL", "KILN_TORCH_INDEX_URL"] {
            place.env(name, empty);
        }
        assert!(place.say(&FETCH).contains("error[no-index]: no package index is configured\n"));
    }
}

#[test]
fn malformed_addresses() {
    let place = Place::without_torch();
    let with = |url: &str| place.say(&["--index", url, "toolchain", "fetch", "torch==2.13.0"]);
    insta::assert_snapshot!(with("mirror/simple"), @r"
    exit code 1
    --- stderr ---
    error[network-settings]: the value of `--index` is not the URL of a package index: it begins neither with `https://`, `http://` or `file://` nor, as a path, with `/`, `./` or `../`
    hint: it has the form `https://host/simple`, or is the path of a directory
    ");
    insta::assert_snapshot!(with("ftp://mirror.example/simple"), @r"
    exit code 1
    --- stderr ---
    error[network-settings]: the value of `--index` is not the URL of a package index: `ftp:` addresses are not supported, only `https:`, `http:` and `file:`
    hint: it has the form `https://host/simple`, or is the path of a directory
    ");
    insta::assert_snapshot!(with("http://user:secret@[::1/simple"), @r"
    exit code 1
    --- stderr ---
    error[network-settings]: the value of `--index` is not the URL of a package index: invalid IPv6 address
    hint: it has the form `https://host/simple`, or is the path of a directory
    ");
    let mut place = Place::without_torch();
    place.env("UV_DEFAULT_INDEX", "mirror/simple");
    insta::assert_snapshot!(place.say(&FETCH), @r"
    exit code 1
    --- stderr ---
    error[network-settings]: the value of `UV_DEFAULT_INDEX` is not the URL of a package index: it begins neither with `https://`, `http://` or `file://` nor, as a path, with `/`, `./` or `../`
    hint: it has the form `https://host/simple`, or is the path of a directory
    ");
    let place = Place::without_torch();
    place.write("home/.config/pip/pip.conf", "[global\n");
    insta::assert_snapshot!(place.say(&FETCH), @"
    exit code 1
    --- stderr ---
    error[network-settings]: cannot read pip's configuration `[dir]/home/.config/pip/pip.conf`, line 1: a section without `]`
    ");
}

#[test]
fn offline_with_an_empty_store() {
    let place = Place::without_torch();
    place.write_project();
    insta::assert_snapshot!(place.say(&["build", "--offline"]), @"
    exit code 1
    --- stderr ---
    error[offline]: torch 2.15.0 (linux-x86_64) is not in the store, and `--offline` forbids to fetch it
    hint: run `kiln toolchain fetch torch==2.15.0` while online
    ");
    insta::assert_snapshot!(place.say(&["build", "--offline", "--torch", "2.11"]), @"
    exit code 1
    --- stderr ---
    error[offline]: torch 2.11.0 (linux-x86_64) is not in the store, and `--offline` forbids to fetch it
    hint: run `kiln toolchain fetch torch==2.11.0` while online
    ");
    insta::assert_snapshot!(place.say(&["--offline", "toolchain", "fetch", "torch==2.13.0"]), @"
    exit code 1
    --- stderr ---
    error[offline]: torch 2.13.0 (linux-x86_64) is not in the store, and `--offline` forbids to fetch it
    hint: run `kiln toolchain fetch torch==2.13.0` while online
    ");
}

#[test]
fn a_server_that_is_down() {
    let mut server = FixtureServer::start().unwrap();
    server.stop();
    insta::assert_snapshot!(fetch_from(&server), @"
    exit code 1
    --- stderr ---
        Fetching torch 2.13.0 (linux-x86_64)
    warning: `http://127.0.0.1:[port]/simple/torch/`: the connection was refused (try 1 of 4, again in [n] ms)
    warning: `http://127.0.0.1:[port]/simple/torch/`: the connection was refused (try 2 of 4, again in [n] ms)
    warning: `http://127.0.0.1:[port]/simple/torch/`: the connection was refused (try 3 of 4, again in [n] ms)
    error[fetch]: cannot fetch the file list of `torch`: http://127.0.0.1:[port]/simple/torch/: the connection was refused
    hint: is the network up, and is the index the right one? another can be given with `--index URL`
    ");
}

#[test]
fn a_server_that_is_ill() {
    let server = server(b"");
    server.fault(Target::Pages, Fault::Status(500));
    insta::assert_snapshot!(fetch_from(&server), @"
    exit code 1
    --- stderr ---
        Fetching torch 2.13.0 (linux-x86_64)
    warning: `http://127.0.0.1:[port]/simple/torch/`: the server answered 500 (try 1 of 4, again in [n] ms)
    warning: `http://127.0.0.1:[port]/simple/torch/`: the server answered 500 (try 2 of 4, again in [n] ms)
    warning: `http://127.0.0.1:[port]/simple/torch/`: the server answered 500 (try 3 of 4, again in [n] ms)
    error[fetch]: cannot fetch the file list of `torch`: http://127.0.0.1:[port]/simple/torch/: the server answered 500
    hint: the server is in trouble: try again later, or give another index with `--index URL`
    ");
    server.heal();
    server.fault(Target::Pages, Fault::Status(403));
    insta::assert_snapshot!(fetch_from(&server), @r"
    exit code 1
    --- stderr ---
        Fetching torch 2.13.0 (linux-x86_64)
    error[index-access]: the index http://127.0.0.1:[port]/simple/ gives no access to project `torch`: it answered 403
    hint: either it does not let everybody see it (credentials may stand in netrc, or in the index URL), or it has no such project and says so in this way
    ");
    server.heal();
    server.demand("user:password");
    insta::assert_snapshot!(fetch_from(&server), @r"
    exit code 1
    --- stderr ---
        Fetching torch 2.13.0 (linux-x86_64)
    error[index-access]: the index http://127.0.0.1:[port]/simple/ gives no access to project `torch`: it answered 401
    hint: it wants credentials, or others than it got: they may stand in netrc, or in the index URL
    ");
}

#[test]
fn an_index_without_the_wheel() {
    let server = FixtureServer::start().unwrap();
    insta::assert_snapshot!(fetch_from(&server), @"
    exit code 1
    --- stderr ---
        Fetching torch 2.13.0 (linux-x86_64)
    error[index]: the index http://127.0.0.1:[port]/simple/ has no project `torch`
    hint: another index can be given with `--index URL`; a mirror must carry the same files as the original
    ");
    server.add_file("torch", "torch-1.0.0-py3-none-any.whl", b"old".to_vec(), None);
    insta::assert_snapshot!(fetch_from(&server), @"
    exit code 1
    --- stderr ---
        Fetching torch 2.13.0 (linux-x86_64)
    error[index]: the index http://127.0.0.1:[port]/simple/ does not list `torch-2.13.0-cp311-cp311-manylinux_2_28_x86_64.whl`
    hint: another index can be given with `--index URL`; a mirror must carry the same files as the original
    ");
}

#[test]
fn a_page_that_is_none() {
    let server = server(b"");
    server.fault(Target::Pages, Fault::Other("text/plain", "hello\n"));
    insta::assert_snapshot!(fetch_from(&server), @"
    exit code 1
    --- stderr ---
        Fetching torch 2.13.0 (linux-x86_64)
    error[index]: http://127.0.0.1:[port]/simple/torch/ is not a page of a package index: its content type is `text/plain`
    hint: is the index the right one? another can be given with `--index URL`
    ");
}

#[test]
fn a_wheel_of_another_digest() {
    let server = FixtureServer::start().unwrap();
    server.add_file("torch", &pinned().file, b"another wheel".to_vec(), Some("0".repeat(64)));
    insta::assert_snapshot!(fetch_from(&server), @"
    exit code 1
    --- stderr ---
        Fetching torch 2.13.0 (linux-x86_64)
    error[index]: the index http://127.0.0.1:[port]/simple/ lists `torch-2.13.0-cp311-cp311-manylinux_2_28_x86_64.whl` with sha256 0000000000000000000000000000000000000000000000000000000000000000, but 60fcdcb2f3876e21146cb4524ef06397d727ca9ad5f020818547e25075fe3cb7 is pinned
    hint: the file was damaged or replaced: try another index with `--index URL`; nothing of it was kept
    ");
}

#[test]
fn a_wheel_cut_short() {
    insta::assert_snapshot!(fetch_from(&server(b"PK\x03\x04 not much of a wheel")), @"
    exit code 1
    --- stderr ---
        Fetching torch 2.13.0 (linux-x86_64)
    error[wheel]: `torch-2.13.0-cp311-cp311-manylinux_2_28_x86_64.whl` from http://127.0.0.1:[port]/files/torch-2.13.0-cp311-cp311-manylinux_2_28_x86_64.whl is not the file that is pinned: it has 24 bytes, but 526574961 are pinned
    hint: the file was damaged or replaced: try another index with `--index URL`; nothing of it was kept
    ");
}

/// A server that announces the whole of the pinned wheel whatever it is asked for, and breaks off early.
fn server_without_ranges() -> Server {
    let wheel = pinned();
    let url = format!("../../files/{}", wheel.file);
    let file = serde_json::json!({"filename": wheel.file, "url": url, "hashes": {"sha256": wheel.sha256}, "size": wheel.size});
    let page = serde_json::json!({"meta": {"api-version": "1.1"}, "name": "torch", "files": [file]}).to_string();
    let answer = move |request: &Request| {
        if request.path.ends_with(".whl") {
            return Response { length: wheel.size, ending: Ending::Cut(9), ..Response::new(200, "some bytes") };
        }
        Response::new(200, page.clone()).with("content-type", "application/vnd.pypi.simple.v1+json")
    };
    Server::start(0, None, Box::new(answer)).unwrap()
}

#[test]
fn a_server_without_ranges_is_told_aloud() {
    let server = server_without_ranges();
    let mut place = Place::without_torch();
    place.env("KILN_INDEX_URL", &format!("{}/simple", server.url()));
    insta::assert_snapshot!(place.say(&FETCH), @"
    exit code 1
    --- stderr ---
        Fetching torch 2.13.0 (linux-x86_64)
    warning: the index does not answer range requests: taking the whole of `torch-2.13.0-cp311-cp311-manylinux_2_28_x86_64.whl` (526.6 MB)
    warning: `http://127.0.0.1:[port]/files/torch-2.13.0-cp311-cp311-manylinux_2_28_x86_64.whl`: the answer ended after 9 of 526574961 bytes (try 1 of 4, again in [n] ms)
    warning: `http://127.0.0.1:[port]/files/torch-2.13.0-cp311-cp311-manylinux_2_28_x86_64.whl`: the answer ended after 9 of 526574961 bytes (try 2 of 4, again in [n] ms)
    warning: `http://127.0.0.1:[port]/files/torch-2.13.0-cp311-cp311-manylinux_2_28_x86_64.whl`: the answer ended after 9 of 526574961 bytes (try 3 of 4, again in [n] ms)
    error[fetch]: cannot fetch `torch-2.13.0-cp311-cp311-manylinux_2_28_x86_64.whl`: http://127.0.0.1:[port]/files/torch-2.13.0-cp311-cp311-manylinux_2_28_x86_64.whl: the answer ended after 9 of 526574961 bytes
    hint: is the network up, and is the index the right one? another can be given with `--index URL`
    ");
}

#[test]
fn settings_of_the_network_that_cannot_be_used() {
    let server = server(b"");
    let mut place = Place::without_torch();
    place.env("KILN_INDEX_URL", &server.index()).env("SSL_CERT_FILE", "/nowhere/certificates.pem");
    insta::assert_snapshot!(place.say(&FETCH), @"
    exit code 1
    --- stderr ---
    error[network-settings]: cannot read the certificates of `/nowhere/certificates.pem`: No such file or directory (os error 2)
    ");
    let mut place = Place::without_torch();
    place.env("KILN_INDEX_URL", &server.index()).env("HTTPS_PROXY", "gopher://user:secret@proxy");
    insta::assert_snapshot!(place.say(&FETCH), @r"
    exit code 1
    --- stderr ---
    error[network-settings]: the proxy `proxy` cannot be used: it is not of the form `http://host:port`
    ");
}

#[test]
fn a_store_that_cannot_be_written_to() {
    let server = server(b"");
    let mut place = Place::without_torch();
    place.env("KILN_INDEX_URL", &server.index());
    place.write("cache/toolchains-v1", "");
    insta::assert_snapshot!(place.say(&FETCH), @"
    exit code 1
    --- stderr ---
    error[store]: cannot create `[dir]/cache/toolchains-v1/locks`: Not a directory (os error 20)
    hint: toolchains can be kept elsewhere with `--cache-dir DIR`
    ");
}
