//! What must not be seen: passwords, tokens and signatures, in anything that a run says or leaves behind.

use std::fs;
use std::path::Path;

use kiln_test_server::{Fault, FixtureServer, ProxyServer, Target};

use crate::Place;
use crate::index::{FETCH, pinned};

/// How a secret would look.
fn secrets() -> Vec<String> {
    let logins = ["us:hush-index", "nu:hush-netrc", "pu:hush-proxy"];
    let encoded = logins.map(|login| data_encoding::BASE64.encode(login.as_bytes()));
    std::iter::once("hush".to_owned()).chain(encoded).collect()
}

/// The texts of all files below `dir`, with their names.
fn texts(dir: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            texts(&path, found);
        } else if !path.ends_with(".netrc") && !path.ends_with("kiln.toml") && !path.is_symlink() {
            found.push(format!("{}: {}", path.display(), String::from_utf8_lossy(&fs::read(&path).unwrap())));
        }
    }
}

/// Whatever reaches for an index or tells of one, as loud as it can be.
const LOUD: [&[&str]; 13] = [
    &FETCH,
    &["build"],
    &["build", "-v", "--print-commands", "--explain"],
    &["build", "--message-format", "json", "--explain"],
    &["doctor", "-v"],
    &["doctor", "--format", "json"],
    &["toolchain", "add", "torch==2.16.0"],
    &["toolchain", "add", "torch==2.13.0+cu126"],
    &["toolchain", "fetch", "cuda==13.2"],
    &["toolchain", "update"],
    &["toolchain", "list", "-v", "--format", "json"],
    &["toolchain", "verify", "--repair"],
    &["toolchain", "gc"],
];

/// Runs fetches and builds of `place`, and asserts that none says or keeps a secret; gives what they said.
fn keeps_quiet(place: &Place) -> String {
    let mut found: Vec<String> = LOUD.iter().map(|args| place.say(args)).collect();
    let said = found.concat();
    texts(&place.path("."), &mut found);
    for text in found {
        for secret in secrets() {
            assert!(!text.contains(&secret), "{text}");
        }
    }
    said
}

#[test]
fn passwords_and_signatures_are_never_shown() {
    let server = FixtureServer::start().unwrap();
    let wheel = pinned();
    server.add_file("torch", &wheel.file, b"x".to_vec(), Some(wheel.sha256));
    server.sign("token=hush-query");
    let with_login = server.index().replace("http://", "http://us:hush-index@");
    let faults = [
        (Target::Pages, Fault::Status(401)),
        (Target::Pages, Fault::Status(403)),
        (Target::Pages, Fault::Status(404)),
        (Target::Files, Fault::Status(401)),
        (Target::Files, Fault::Status(403)),
        (Target::Files, Fault::RedirectTo(server.url().replace("127.0.0.1", "localhost"))),
        (Target::Files, Fault::RedirectLoop),
        (Target::Files, Fault::NoRanges),
    ];
    let mut said = String::new();
    for (target, fault) in faults {
        let mut place = Place::without_torch();
        place.write_project();
        place.write("home/.netrc", "machine 127.0.0.1 login nu password hush-netrc\ndefault login nu password hush-netrc\n");
        place.env("KILN_INDEX_URL", &with_login).env("KILN_TORCH_INDEX_URL", &with_login);
        server.heal();
        server.fault(target, fault);
        said.push_str(&keeps_quiet(&place));
    }
    // All of that went wrong, and says so.
    for code in ["error[index-access]", "error[index]", "error[fetch]", "error[wheel]"] {
        assert!(said.contains(code), "{code} is not in {said}");
    }
}

/// A proxy that takes the password, and one that does not.
#[test]
fn passwords_of_proxies_are_never_shown() {
    let server = FixtureServer::start().unwrap();
    let wheel = crate::toolchain::unknown_torch(1000);
    server.add("torch", &wheel);
    server.sign("token=hush-query");
    server.demand("us:hush-index");
    let index = server.index().replace("http://", "http://us:hush-index@");
    for (demanded, passes) in [("pu:hush-proxy", true), ("pu:another", false)] {
        let proxy = ProxyServer::start(Some(demanded)).unwrap();
        let mut place = Place::without_torch();
        place.write_project();
        let address = format!("http://pu:hush-proxy@{}", proxy.address());
        place.env("KILN_INDEX_URL", &index).env("http_proxy", &address).env("ALL_PROXY", &address);
        let said = keeps_quiet(&place);
        assert_eq!(said.contains("Added torch 2.16.0 (linux-x86_64)"), passes, "{said}");
        assert_eq!(said.contains("the proxy `127.0.0.1:[port]` answered 407"), !passes, "{said}");
        assert_eq!(place.path("relu/kiln.lock").exists(), passes);
        assert!(!proxy.tunnels().is_empty());
    }
}

#[test]
fn settings_that_are_wrong_are_not_quoted() {
    let mut said = String::new();
    for kiln_toml in [
        "[index]\nurl = \"ftp://us:hush-index@host/simple?token=hush-query\"\n",
        "[index]\nurl = \"https://us:hush-index@host/simple\" unknown\n",
        "index = { url = \"https://us:hush-index@host/simple?token=hush-query\", other = 1 }\n",
        "[index]\ntorch = \"ghp-hush:abc\"\n",
        "[index]\nurl = 'hush-index@host/simple' unknown\n",
        "index = { torch = \"ghp-hush://host/simple\" }\n",
        "index.url = \"https://host:hush/\"\n",
    ] {
        let place = Place::without_torch();
        place.write_project();
        place.write("relu/kiln.toml", kiln_toml);
        said.push_str(&keeps_quiet(&place));
        said.push_str(&place.say(&["check-config"]));
    }
    assert!(!said.contains("hush"), "{said}");
    insta::assert_snapshot!(said.split("exit code").nth(2).unwrap(), @r#"
     1
    --- stderr ---
    error[invalid-url]: `url` is not the address of a package index: `ftp:` addresses are not supported, only `https:`, `http:` and `file:`
      --> kiln.toml:2:7
      |
    2 | url = "ftp://*************@host/simple?****************"
      |       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    hint: an index address has the form `https://host/simple`, or is a path such as `./wheels`
    error[configuration]: the configuration has 1 error
    "#);
    // Addresses of the command line: a token that stands where the scheme should be, as a user, as a port, in the path.
    let place = Place::without_torch();
    place.write_project();
    let malformed = ["ghp-hush:abc", "hush:@host/simple", "hush@host", "https://host:hush/", "ghp-hush://host/simple"];
    let quick: [&[&str]; 3] = [&FETCH, &["doctor", "-v"], &["build", "--message-format", "json"]];
    for address in malformed.into_iter().chain(["https://hush@127.0.0.1:1/t/hush/"]) {
        for option in ["--index", "--torch-index"] {
            let other = if option == "--index" { "--torch-index" } else { "--index" };
            for args in quick {
                let said = place.say(&[&[option, address, other, "/nowhere"], args].concat());
                assert!(!said.contains("hush"), "{option} {address} {args:?}: {said}");
            }
        }
    }
    keeps_quiet(&place);
    let mut place = Place::without_torch();
    place.write_project();
    place.env("HTTPS_PROXY", "socks5://pu:hush-proxy@host:1").env("KILN_INDEX_URL", "https://us:hush-index@host.invalid/simple");
    keeps_quiet(&place);
    place.env("HTTPS_PROXY", "http://pu:hush-proxy@127.0.0.1:9").env("NETRC", "/nowhere/netrc");
    insta::assert_snapshot!(place.say(&FETCH), @r"
    exit code 1
    --- stderr ---
    error[network-settings]: cannot read `/nowhere/netrc`, which `NETRC` names: No such file or directory (os error 2)
    ");
    keeps_quiet(&place);
}
