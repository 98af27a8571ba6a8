//! Where wheels come from: directories, single pages, two indexes, credentials and proxies.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod common;

use std::fs;
use std::time::Duration;

use common::{Bench, torch};
use kiln_test_server::{Fault, FixtureServer, ProxyServer, Target};
use kiln_toolchain::{Pieces, Proxies, Slowest};

/// A bench with a small wheel, whose server is not asked unless a test says so.
fn bench() -> Bench {
    Bench::with(torch().build())
}

/// The paths that a server was asked for, each once.
fn asked(server: &FixtureServer) -> Vec<String> {
    let mut paths: Vec<String> = server.log().entries.into_iter().map(|entry| entry.path).collect();
    paths.dedup();
    paths
}

/// The headers that a server saw, each once.
fn seen(server: &FixtureServer) -> Vec<Option<String>> {
    let mut seen: Vec<Option<String>> = server.log().entries.into_iter().map(|entry| entry.authorization).collect();
    seen.sort();
    seen.dedup();
    seen
}

fn basic(text: &str) -> Option<String> {
    Some(format!("Basic {}", data_encoding::BASE64.encode(text.as_bytes())))
}

#[test]
fn a_directory_with_wheels_serves_offline_too() {
    let mut bench = bench();
    bench.offline = true;
    let dir = bench.dir.path().join("my wheels \u{e9}");
    fs::create_dir(&dir).unwrap();
    bench.index = dir.display().to_string();
    let shown = |bench: &Bench| bench.shown(&bench.fetch().unwrap_err());
    insta::assert_snapshot!(shown(&bench), @r"
    error: the index [dir]/my wheels é/ has no project `torch`
    hint: another index can be given with `--index URL`; a mirror must carry the same files as the original
    ");
    fs::write(dir.join("README"), "not a wheel").unwrap();
    fs::write(dir.join("torchvision-1.0-py3-none-any.whl"), "another project").unwrap();
    fs::write(dir.join(&bench.wheel.file), &bench.wheel.bytes).unwrap();
    bench.fetch().unwrap();
    let told = bench.told();
    assert_eq!(told.last().unwrap(), "finished torch 2.13.0 (linux-x86_64) in 0 requests");
    assert_eq!(bench.server.log().entries.len(), 0);
    // The same file with another byte in it is refused like any other.
    fs::remove_dir_all(bench.cache()).unwrap();
    let mut bytes = bench.wheel.bytes.clone();
    bytes[usize::try_from(bench.wheel.data_start("torch/version.py")).unwrap()] ^= 1;
    fs::write(dir.join(&bench.wheel.file), &bytes).unwrap();
    assert!(shown(&bench).contains("member `torch/version.py`"));
    bytes.truncate(1000);
    fs::write(dir.join(&bench.wheel.file), &bytes).unwrap();
    insta::assert_snapshot!(shown(&bench), @r"
    error: `torch-2.13.0-py3-none-any.whl` from file://[dir]/my%20wheels%20%C3%A9/torch-2.13.0-py3-none-any.whl is not the file that is pinned: it has 1000 bytes, but [n] are pinned
    hint: the file was damaged or replaced: try another index with `--index URL`; nothing of it was kept
    ");
    bench.assert_clean();
}

#[test]
fn a_directory_as_a_mirror_has_it() {
    let mut bench = bench();
    let dir = bench.dir.path().join("mirror");
    fs::create_dir_all(dir.join("Torch")).unwrap();
    fs::create_dir_all(dir.join("files")).unwrap();
    fs::write(dir.join("files").join(&bench.wheel.file), &bench.wheel.bytes).unwrap();
    let page = format!("<a href=\"../files/{0}#sha256={1}\">{0}</a>", bench.wheel.file, bench.wheel.sha256);
    fs::write(dir.join("Torch/index.html"), page).unwrap();
    bench.index = format!("file://{}", dir.display());
    bench.fetch().unwrap();
    assert_eq!(bench.server.log().entries.len(), 0);
    bench.index = dir.join("nowhere").display().to_string();
    fs::remove_dir_all(bench.cache()).unwrap();
    insta::assert_snapshot!(bench.shown(&bench.fetch().unwrap_err()), @"error: cannot read the index directory `[dir]/mirror/nowhere/`: No such file or directory (os error 2)");
}

#[test]
fn a_page_of_this_machine_that_leads_to_a_server() {
    let mut bench = bench();
    let page = bench.dir.path().join("wheels.html");
    let link = format!("{}/files/{}", bench.server.url(), bench.wheel.file);
    fs::write(&page, format!("<a href={link}>torch</a>")).unwrap();
    bench.index = page.display().to_string();
    // Offline, the page can be read and the wheel cannot.
    bench.offline = true;
    insta::assert_snapshot!(bench.shown(&bench.fetch().unwrap_err()), @r"
    error: torch 2.13.0 (linux-x86_64) is not in the store, and `--offline` forbids to fetch it
    hint: run `kiln toolchain fetch torch==2.13.0` while online
    ");
    assert_eq!(bench.server.log().entries.len(), 0);
    bench.offline = false;
    bench.fetch().unwrap();
}

#[test]
fn a_single_page_with_all_wheels() {
    let bench = bench();
    bench.server.flat();
    bench.server.add_file("other", "other-1.0-py3-none-any.whl", b"x".to_vec(), None);
    bench.fetch().unwrap();
    assert_eq!(asked(&bench.server)[..2], ["/simple/torch/", "/simple/"]);
}

#[test]
fn the_second_index_is_asked_for_what_the_first_one_lacks() {
    let mut bench = bench();
    let second = FixtureServer::start().unwrap();
    bench.torch_index = Some(second.index());
    bench.fetch().unwrap();
    assert_eq!(second.log().entries.len(), 0);
    fs::remove_dir_all(bench.cache()).unwrap();
    second.add("torch", &bench.wheel);
    bench.server.remove(&bench.wheel.file);
    bench.fetch().unwrap();
    assert!(second.log().requests("/files/") > 0);
    // If none has it, the first one is named.
    fs::remove_dir_all(bench.cache()).unwrap();
    second.remove(&bench.wheel.file);
    insta::assert_snapshot!(bench.shown(&bench.fetch().unwrap_err()), @r"
    error: the index http://[server]/simple/ has no project `torch`
    hint: another index can be given with `--index URL`; a mirror must carry the same files as the original
    ");
}

#[test]
fn netrc_goes_to_its_machine_and_to_no_other() {
    let mut bench = bench();
    let other = FixtureServer::start().unwrap();
    other.add("torch", &bench.wheel);
    bench.server.demand("me:sesame");
    bench.netrc = "machine 127.0.0.1 login me password sesame\n".to_owned();
    // The files are elsewhere: by another name of the same machine.
    let elsewhere = other.url().replace("127.0.0.1", "localhost");
    bench.server.fault(Target::Files, Fault::RedirectTo(elsewhere));
    bench.fetch().unwrap();
    assert_eq!(seen(&bench.server), [basic("me:sesame")]);
    assert_eq!(seen(&other), [None]);
    // A default is for the index, and what stands in the address is as well.
    for (netrc, address) in [("default login me password sesame", "http://"), ("default login x password x", "http://me:sesame@")] {
        bench.netrc = netrc.to_owned();
        bench.index = bench.server.index().replace("http://", address);
        fs::remove_dir_all(bench.cache()).unwrap();
        bench.server.clear_log();
        other.clear_log();
        bench.fetch().unwrap();
        assert_eq!((seen(&bench.server), seen(&other)), (vec![basic("me:sesame")], vec![None]));
    }
    bench.netrc = "machine 127.0.0.1 login me password wrong\n".to_owned();
    bench.index = bench.server.index();
    fs::remove_dir_all(bench.cache()).unwrap();
    insta::assert_snapshot!(bench.shown(&bench.fetch().unwrap_err()), @r"
    error: the index http://[server]/simple/ gives no access to project `torch`: it answered 401
    hint: it wants credentials, or others than it got: they may stand in netrc, or in the index URL
    ");
}

#[test]
fn proxies_by_rule() {
    let mut bench = bench();
    let proxy = ProxyServer::start(Some("pu:p w")).unwrap();
    bench.proxies = Proxies { http: Some(format!("http://pu:p%20w@{}", proxy.address())), ..Proxies::default() };
    bench.fetch().unwrap();
    let target = bench.server.url().replace("http://", "");
    assert!(proxy.tunnels().iter().all(|tunnel| tunnel.target == target && tunnel.authorization == basic("pu:p w")));
    let count = proxy.tunnels().len();
    assert!(count > 0);
    // What is exempt, or for the other scheme, does not go through it.
    for proxies in [
        Proxies { exempt: "127.0.0.0/8".to_owned(), ..bench.proxies.clone() },
        Proxies { https: bench.proxies.http.clone(), http: None, ..Proxies::default() },
    ] {
        bench.proxies = proxies;
        fs::remove_dir_all(bench.cache()).unwrap();
        bench.fetch().unwrap();
        assert_eq!(proxy.tunnels().len(), count);
    }
    bench.proxies = Proxies::all(&format!("http://pu:hush@{}", proxy.address()));
    fs::remove_dir_all(bench.cache()).unwrap();
    let error = bench.fetch().unwrap_err();
    assert!(!format!("{error:?}").contains("hush"));
    insta::assert_snapshot!(bench.shown(&error), @r"
    error: cannot fetch the file list of `torch`: http://[server]/simple/torch/: the proxy `127.0.0.1:[n]` answered 407
    hint: the proxy wants credentials: they may stand in its URL
    ");
}

#[test]
fn a_long_range_comes_in_pieces() {
    let mut bench = bench();
    bench.pieces = Pieces { size: 1000, parallel: 4 };
    bench.server.fault_times(Target::Files, Fault::Cut(500), 2, Some(2));
    bench.fetch().unwrap();
    let log = bench.server.log();
    assert_eq!(log.sent_twice(), Vec::<String>::new());
    assert!(log.connections > 1);
}

#[test]
fn a_server_that_is_slower_than_any() {
    let mut bench = bench();
    // Every sound answer comes in a piece of more bytes than that, however slow the machine is.
    bench.slowest = Slowest { bytes: 50, window: Duration::from_millis(400) };
    bench.retry.attempts = 2;
    bench.server.fault(Target::Files, Fault::Trickle(20));
    insta::assert_snapshot!(bench.shown(&bench.fetch().unwrap_err()), @r"
    error: cannot fetch `torch-2.13.0-py3-none-any.whl`: http://[server]/files/torch-2.13.0-py3-none-any.whl: the server sends too slowly
    hint: is the network up, and is the index the right one? another can be given with `--index URL`
    ");
    bench.assert_clean();
}

#[test]
fn pages_come_compressed_where_a_server_can() {
    let compressed = bench();
    compressed.fetch().unwrap();
    let plain = bench();
    plain.server.plain();
    plain.fetch().unwrap();
    let page = |bench: &Bench| bench.server.log().entries.iter().find(|entry| entry.path == "/simple/torch/").unwrap().bytes;
    assert!(page(&compressed) < page(&plain));
    let false_gzip = bench();
    false_gzip.server.plain();
    false_gzip.server.fault(Target::Pages, Fault::FalseGzip);
    insta::assert_snapshot!(false_gzip.shown(&false_gzip.fetch().unwrap_err()), @"error: cannot fetch the file list of `torch`: http://[server]/simple/torch/: the page is compressed and damaged");
}

#[test]
fn files_that_are_not_there_any_more() {
    let bench = bench();
    bench.server.fault(Target::Pages, Fault::Status(403));
    insta::assert_snapshot!(bench.shown(&bench.fetch().unwrap_err()), @r"
    error: the index http://[server]/simple/ gives no access to project `torch`: it answered 403
    hint: either it does not let everybody see it (credentials may stand in netrc, or in the index URL), or it has no such project and says so in this way
    ");
    bench.server.heal();
    bench.server.fault(Target::Files, Fault::NoSuchBytes(77));
    insta::assert_snapshot!(bench.shown(&bench.fetch().unwrap_err()), @r"
    error: `torch-2.13.0-py3-none-any.whl` from http://[server]/files/torch-2.13.0-py3-none-any.whl is not the file that is pinned: it has 77 bytes, but [n] are pinned
    hint: the file was damaged or replaced: try another index with `--index URL`; nothing of it was kept
    ");
    bench.server.heal();
    // A resumed range of a file that is another one meanwhile: the server sends the whole new file.
    bench.server.fault_times(Target::Files, Fault::Cut(500), 0, Some(1));
    bench.server.fault_times(Target::Files, Fault::OtherEtag, 1, None);
    insta::assert_snapshot!(bench.shown(&bench.fetch().unwrap_err()), @r"
    error: `torch-2.13.0-py3-none-any.whl` changed on the server while it was read: its `ETag` is another one
    hint: run the command again; nothing of it was kept
    ");
    bench.server.heal();
    bench.server.fault(Target::Files, Fault::FalseGzip);
    insta::assert_snapshot!(bench.shown(&bench.fetch().unwrap_err()), @"error: cannot fetch `torch-2.13.0-py3-none-any.whl`: http://[server]/files/torch-2.13.0-py3-none-any.whl: the server compresses the file: places in it cannot be asked for");
    bench.assert_clean();
}

#[test]
fn nothing_secret_is_said_or_kept() {
    let mut bench = bench();
    let other = FixtureServer::start().unwrap();
    other.add("torch", &bench.wheel);
    let proxy = ProxyServer::start(Some("pu:proxy-hush")).unwrap();
    bench.server.demand("us:index-hush");
    bench.server.sign("token=query-hush");
    bench.index = bench.server.index().replace("http://", "http://us:index-hush@");
    bench.netrc = "machine localhost login nu password netrc-hush".to_owned();
    bench.proxies = Proxies::all(&format!("http://pu:proxy-hush@{}", proxy.address()));
    bench.server.fault_times(Target::Files, Fault::RedirectTo(other.url().replace("127.0.0.1", "localhost")), 1, None);
    other.fault_times(Target::Files, Fault::Cut(100), 1, Some(1));
    bench.fetch().unwrap();
    assert_eq!(seen(&other), [basic("nu:netrc-hush")]);
    let mut shown: Vec<String> = bench.events.lock().unwrap().iter().map(|event| format!("{event:?}")).collect();
    for file in common::files_below(&bench.cache()) {
        let text = fs::read(bench.cache().join(&file)).unwrap();
        shown.push(format!("{file}: {}", String::from_utf8_lossy(&text)));
    }
    // And what is said when it goes wrong.
    for fault in [Fault::Status(401), Fault::Status(403), Fault::Status(404), Fault::Status(500), Fault::Hangup, Fault::RedirectLoop] {
        for target in [Target::Pages, Target::Files] {
            fs::remove_dir_all(bench.cache()).unwrap();
            fs::create_dir_all(bench.cache()).unwrap();
            bench.server.heal();
            bench.server.fault(target, fault.clone());
            let error = bench.fetch().unwrap_err();
            shown.push(format!("{error} {error:?} {:?}", error.hint()));
        }
    }
    shown.extend(bench.events.lock().unwrap().iter().map(|event| format!("{event:?}")));
    assert!(shown.len() > 40);
    let secrets = ["us:index-hush", "nu:netrc-hush", "pu:proxy-hush"].map(|login| data_encoding::BASE64.encode(login.as_bytes()));
    for text in shown {
        assert!(!text.contains("hush") && !secrets.iter().any(|secret| text.contains(secret.as_str())), "{text}");
    }
}
