//! What goes wrong on the way, one fault at a time: the whole message, a clean store, and a fetch that works afterwards.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod common;

use std::time::Duration;

use common::Bench;
use kiln_test_server::{Fault, Target};
use kiln_toolchain::{AgentOptions, HttpFault, Proxies, ProxyTrouble, Request, Transport, Trust, UreqTransport};

/// Makes a bench, spoils it, fetches; gives the message and the events.
fn failing(spoil: impl FnOnce(&mut Bench)) -> String {
    let mut bench = Bench::new();
    spoil(&mut bench);
    let error = bench.fetch().unwrap_err();
    bench.assert_clean();
    let retries: String = bench.told().iter().filter(|told| told.starts_with("retry")).map(|told| format!("{told}\n")).collect();
    format!("{retries}{}", bench.shown(&error))
}

/// Makes a bench, spoils it, fetches in spite of it; gives the events.
fn enduring(spoil: impl FnOnce(&mut Bench)) -> String {
    let mut bench = Bench::new();
    spoil(&mut bench);
    let dir = bench.fetch().unwrap();
    bench.assert_tree(&dir);
    bench.told().join("\n")
}

#[test]
fn a_sound_server() {
    insta::assert_snapshot!(enduring(|_| {}), @r"
    started torch 2.13.0 (linux-x86_64)
    finished torch 2.13.0 (linux-x86_64) in 6 requests
    ");
}

#[test]
fn nothing_is_sent_twice_and_little_in_all() {
    let bench = Bench::new();
    bench.fetch().unwrap();
    let log = bench.server.log();
    assert_eq!(log.sent_twice(), Vec::<String>::new());
    assert_eq!(log.connections, 1);
    // The libraries before and after the headers are not fetched.
    assert!(log.bytes() < bench.wheel.bytes.len() as u64 - 650_000, "{} of {}", log.bytes(), bench.wheel.bytes.len());
}

#[test]
fn the_server_is_down() {
    insta::assert_snapshot!(failing(|bench| bench.server.stop()), @r"
    retry 1/3: the connection was refused
    retry 2/3: the connection was refused
    error: cannot fetch the file list of `torch`: http://[server]/simple/torch/: the connection was refused
    hint: is the network up, and is the index the right one? another can be given with `--index URL`
    ");
}

#[test]
fn the_server_is_down_although_the_place_is_known() {
    let mut bench = Bench::new();
    bench.fetch().unwrap();
    std::fs::remove_dir_all(bench.cache().join("toolchains-v1")).unwrap();
    bench.server.stop();
    let error = bench.fetch().unwrap_err();
    bench.assert_clean();
    insta::assert_snapshot!(bench.shown(&error), @r"
    error: cannot fetch `torch-2.13.0-py3-none-any.whl`: http://[server]/files/torch-2.13.0-py3-none-any.whl: the connection was refused
    hint: is the network up, and is the index the right one? another can be given with `--index URL`
    ");
}

#[test]
fn the_index_has_no_torch() {
    insta::assert_snapshot!(failing(|bench| bench.server.remove(&bench.wheel.file)), @r"
    error: the index http://[server]/simple/ has no project `torch`
    hint: another index can be given with `--index URL`; a mirror must carry the same files as the original
    ");
}

#[test]
fn the_index_does_not_list_the_wheel() {
    insta::assert_snapshot!(failing(|bench| {
        bench.server.remove(&bench.wheel.file);
        bench.server.add_file("torch", "torch-1.0-py3-none-any.whl", Vec::new(), None);
    }), @r"
    error: the index http://[server]/simple/ does not list `torch-2.13.0-py3-none-any.whl`
    hint: another index can be given with `--index URL`; a mirror must carry the same files as the original
    ");
}

#[test]
fn the_index_lists_another_hash() {
    insta::assert_snapshot!(failing(|bench| {
        bench.server.add_file("torch", &bench.wheel.file, bench.wheel.bytes.clone(), Some("0".repeat(64)));
    }), @r"
    error: the index http://[server]/simple/ lists `torch-2.13.0-py3-none-any.whl` with sha256 [sha256], but [sha256] is pinned
    hint: the file was damaged or replaced: try another index with `--index URL`; nothing of it was kept
    ");
}

#[test]
fn the_index_wants_a_password() {
    insta::assert_snapshot!(failing(|bench| bench.server.demand("me:secret")), @r"
    error: the index http://[server]/simple/ gives no access to project `torch`: it answered 401
    hint: it wants credentials, or others than it got: they may stand in netrc, or in the index URL
    ");
}

#[test]
fn a_password_in_the_index_url_is_used_and_never_shown() {
    let mut bench = Bench::new();
    bench.server.demand("me:sec@ret");
    bench.index = bench.index.replace("http://", "http://me:sec%40ret@");
    let dir = bench.fetch().unwrap();
    bench.assert_tree(&dir);
    let kept = common::files_below(&bench.cache());
    for file in kept.iter().filter(|file| !file.contains("/trees/")) {
        let text = std::fs::read_to_string(bench.cache().join(file)).unwrap();
        assert!(!text.contains("ret"), "{file}: {text}");
    }
    bench.server.fault(Target::Files, Fault::Status(500));
    std::fs::remove_dir_all(bench.cache().join("toolchains-v1")).unwrap();
    let error = bench.fetch().unwrap_err();
    assert!(!bench.shown(&error).contains("sec") && !format!("{error:?}").contains("sec"));
    assert!(bench.events.lock().unwrap().iter().all(|event| !format!("{event:?}").contains("sec")));
}

#[test]
fn an_html_index() {
    insta::assert_snapshot!(enduring(|bench| bench.server.html_only()), @r"
    started torch 2.13.0 (linux-x86_64)
    finished torch 2.13.0 (linux-x86_64) in 6 requests
    ");
}

#[test]
fn an_error_that_passes() {
    insta::assert_snapshot!(enduring(|bench| {
        bench.server.fault_times(Target::Pages, Fault::Status(503), 0, Some(2));
        bench.server.fault_times(Target::Files, Fault::Status(500), 1, Some(2));
    }), @r"
    started torch 2.13.0 (linux-x86_64)
    retry 1/3: the server answered 503
    retry 2/3: the server answered 503
    retry 1/3: the server answered 500
    retry 2/3: the server answered 500
    finished torch 2.13.0 (linux-x86_64) in 10 requests
    ");
}

#[test]
fn an_error_that_stays() {
    insta::assert_snapshot!(failing(|bench| bench.server.fault(Target::Files, Fault::Status(500))), @"
    retry 1/3: the server answered 500
    retry 2/3: the server answered 500
    error: cannot fetch `torch-2.13.0-py3-none-any.whl`: http://[server]/files/torch-2.13.0-py3-none-any.whl: the server answered 500
    hint: the server is in trouble: try again later, or give another index with `--index URL`
    ");
}

#[test]
fn a_server_that_wants_to_be_left_alone() {
    let bench = Bench::new();
    bench.server.fault_times(Target::Pages, Fault::RetryAfter(429, 1), 0, Some(1));
    bench.fetch().unwrap();
    let events = bench.events.lock().unwrap();
    let waited = events.iter().find_map(|event| match event {
        kiln_toolchain::FetchEvent::Retry { after, .. } => Some(*after),
        _ => None,
    });
    assert_eq!(waited, Some(Duration::from_secs(1)));
}

#[test]
fn a_file_that_is_gone() {
    insta::assert_snapshot!(failing(|bench| bench.server.fault(Target::Files, Fault::Status(404))), @"error: cannot fetch `torch-2.13.0-py3-none-any.whl`: http://[server]/files/torch-2.13.0-py3-none-any.whl: the server answered 404");
}

#[test]
fn answers_that_end_early_are_resumed() {
    let bench = Bench::new();
    bench.server.fault_times(Target::Files, Fault::Cut(1000), 0, Some(2));
    bench.server.fault_times(Target::Files, Fault::Cut(50_000), 6, Some(1));
    let dir = bench.fetch().unwrap();
    bench.assert_tree(&dir);
    insta::assert_snapshot!(bench.told().join("\n"), @r"
    started torch 2.13.0 (linux-x86_64)
    retry 1/3: the answer ended after 1000 of [n] bytes
    retry 2/3: the answer ended after 1000 of [n] bytes
    retry 1/3: the answer ended after [n] of [n] bytes
    finished torch 2.13.0 (linux-x86_64) in 9 requests
    ");
    assert_eq!(bench.server.log().sent_twice(), Vec::<String>::new());
}

#[test]
fn answers_that_always_end_early() {
    insta::assert_snapshot!(failing(|bench| bench.server.fault(Target::Files, Fault::Cut(10))), @"
    retry 1/3: the answer ended after 10 of [n] bytes
    retry 2/3: the answer ended after 10 of [n] bytes
    error: cannot fetch `torch-2.13.0-py3-none-any.whl`: http://[server]/files/torch-2.13.0-py3-none-any.whl: the answer ended after 10 of [n] bytes
    hint: is the network up, and is the index the right one? another can be given with `--index URL`
    ");
}

#[test]
fn answers_shorter_than_asked_for() {
    insta::assert_snapshot!(failing(|bench| bench.server.fault(Target::Files, Fault::Short(20))), @"
    retry 1/3: the answer ended after [n] of [n] bytes
    retry 2/3: the answer ended after 0 of 20 bytes
    error: cannot fetch `torch-2.13.0-py3-none-any.whl`: http://[server]/files/torch-2.13.0-py3-none-any.whl: the answer ended after 0 of 20 bytes
    hint: is the network up, and is the index the right one? another can be given with `--index URL`
    ");
}

#[test]
fn a_page_that_ends_early() {
    insta::assert_snapshot!(failing(|bench| {
        bench.server.plain();
        bench.server.fault(Target::Pages, Fault::Cut(10));
    }), @"
    retry 1/3: the answer ended after 10 of 252 bytes
    retry 2/3: the answer ended after 10 of 252 bytes
    error: cannot fetch the file list of `torch`: http://[server]/simple/torch/: the answer ended after 10 of 252 bytes
    hint: is the network up, and is the index the right one? another can be given with `--index URL`
    ");
}

#[test]
fn a_connection_that_is_closed() {
    insta::assert_snapshot!(failing(|bench| bench.server.fault(Target::Files, Fault::Hangup)), @r"
    retry 1/3: the connection broke
    retry 2/3: the connection broke
    error: cannot fetch `torch-2.13.0-py3-none-any.whl`: http://[server]/files/torch-2.13.0-py3-none-any.whl: the connection broke
    hint: is the network up, and is the index the right one? another can be given with `--index URL`
    ");
}

#[test]
fn a_connection_that_stalls() {
    insta::assert_snapshot!(failing(|bench| {
        bench.read_timeout = Duration::from_millis(200);
        bench.retry.attempts = 2;
        bench.server.fault(Target::Files, Fault::Stall(100));
    }), @r"
    retry 1/2: the server was silent for too long
    error: cannot fetch `torch-2.13.0-py3-none-any.whl`: http://[server]/files/torch-2.13.0-py3-none-any.whl: the server was silent for too long
    hint: is the network up, and is the index the right one? another can be given with `--index URL`
    ");
}

#[test]
fn a_connection_that_stalls_once() {
    insta::assert_snapshot!(enduring(|bench| {
        bench.read_timeout = Duration::from_millis(400);
        bench.server.fault_times(Target::Files, Fault::Stall(60_000), 4, Some(1));
    }), @r"
    started torch 2.13.0 (linux-x86_64)
    retry 1/3: the server was silent for too long
    finished torch 2.13.0 (linux-x86_64) in 7 requests
    ");
}

#[test]
fn a_redirected_index() {
    insta::assert_snapshot!(enduring(|bench| bench.server.fault(Target::Pages, Fault::Redirect)), @r"
    started torch 2.13.0 (linux-x86_64)
    finished torch 2.13.0 (linux-x86_64) in 7 requests
    ");
}

#[test]
fn redirected_files() {
    insta::assert_snapshot!(enduring(|bench| bench.server.fault(Target::Files, Fault::Redirect)), @r"
    started torch 2.13.0 (linux-x86_64)
    finished torch 2.13.0 (linux-x86_64) in 7 requests
    ");
}

#[test]
fn redirects_for_ever() {
    insta::assert_snapshot!(failing(|bench| bench.server.fault(Target::Files, Fault::RedirectLoop)), @"error: cannot fetch `torch-2.13.0-py3-none-any.whl`: http://[server]/files/torch-2.13.0-py3-none-any.whl: more than 8 redirects");
}

#[test]
fn another_range_than_asked_for() {
    insta::assert_snapshot!(failing(|bench| bench.server.fault_times(Target::Files, Fault::OtherRange(7), 1, None)), @"error: cannot fetch `torch-2.13.0-py3-none-any.whl`: http://[server]/files/torch-2.13.0-py3-none-any.whl: the server was asked for bytes [n]-[n] and sends [n]-[n]");
}

#[test]
fn a_file_that_changes_between_requests() {
    insta::assert_snapshot!(failing(|bench| bench.server.fault_times(Target::Files, Fault::OtherEtag, 1, None)), @r"
    error: `torch-2.13.0-py3-none-any.whl` changed on the server while it was read: its `ETag` is another one
    hint: run the command again; nothing of it was kept
    ");
}

#[test]
fn a_file_that_grows_between_requests() {
    insta::assert_snapshot!(failing(|bench| bench.server.fault_times(Target::Files, Fault::OtherLength(5), 1, None)), @r"
    error: `torch-2.13.0-py3-none-any.whl` from http://[server]/files/torch-2.13.0-py3-none-any.whl is not the file that is pinned: it has [n] bytes, but [n] are pinned
    hint: the file was damaged or replaced: try another index with `--index URL`; nothing of it was kept
    ");
}

#[test]
fn a_file_that_changes_while_it_is_resumed() {
    insta::assert_snapshot!(failing(|bench| {
        bench.server.fault_times(Target::Files, Fault::Cut(500), 0, Some(1));
        bench.server.fault_times(Target::Files, Fault::OtherEtag, 1, None);
    }), @r"
    retry 1/3: the answer ended after 500 of [n] bytes
    error: `torch-2.13.0-py3-none-any.whl` changed on the server while it was read: its `ETag` is another one
    hint: run the command again; nothing of it was kept
    ");
}

#[test]
fn a_server_without_ranges() {
    let bench = Bench::new();
    bench.server.fault(Target::Files, Fault::NoRanges);
    let dir = bench.fetch().unwrap();
    bench.assert_tree(&dir);
    insta::assert_snapshot!(bench.told().join("\n"), @r"
    started torch 2.13.0 (linux-x86_64)
    whole file torch-2.13.0-py3-none-any.whl
    finished torch 2.13.0 (linux-x86_64) in 2 requests
    ");
    assert_eq!(bench.server.log().sent_twice(), Vec::<String>::new());
}

#[test]
fn a_server_that_forgets_ranges_on_the_way() {
    insta::assert_snapshot!(enduring(|bench| bench.server.fault_times(Target::Files, Fault::NoRanges, 2, None)), @r"
    started torch 2.13.0 (linux-x86_64)
    whole file torch-2.13.0-py3-none-any.whl
    finished torch 2.13.0 (linux-x86_64) in 4 requests
    ");
}

#[test]
fn a_server_without_ranges_that_breaks_off_once() {
    insta::assert_snapshot!(enduring(|bench| {
        bench.server.fault(Target::Files, Fault::NoRanges);
        bench.server.fault_times(Target::Files, Fault::Cut(200_000), 0, Some(1));
    }), @r"
    started torch 2.13.0 (linux-x86_64)
    whole file torch-2.13.0-py3-none-any.whl
    retry 1/3: the answer ended after [n] of [n] bytes
    finished torch 2.13.0 (linux-x86_64) in 3 requests
    ");
}

#[test]
fn a_server_without_ranges_and_a_changed_wheel() {
    insta::assert_snapshot!(failing(|bench| {
        bench.server.fault(Target::Files, Fault::NoRanges);
        bench.server.fault(Target::Files, Fault::Corrupt(5000));
    }), @r"
    error: `torch-2.13.0-py3-none-any.whl` from http://[server]/files/torch-2.13.0-py3-none-any.whl is not the file that is pinned: it has sha256 [sha256], but [sha256] is pinned
    hint: the file was damaged or replaced: try another index with `--index URL`; nothing of it was kept
    ");
}

#[test]
fn a_server_without_ranges_and_a_longer_wheel() {
    insta::assert_snapshot!(failing(|bench| {
        bench.server.fault(Target::Files, Fault::NoRanges);
        let longer = [&bench.wheel.bytes[..], b"x"].concat();
        bench.server.add_file("torch", &bench.wheel.file, longer, None);
    }), @r"
    error: `torch-2.13.0-py3-none-any.whl` from http://[server]/files/torch-2.13.0-py3-none-any.whl is not the file that is pinned: it has [n] bytes, but [n] are pinned
    hint: the file was damaged or replaced: try another index with `--index URL`; nothing of it was kept
    ");
}

#[test]
fn a_wheel_of_another_length() {
    insta::assert_snapshot!(failing(|bench| {
        let longer = [&bench.wheel.bytes[..], b"x"].concat();
        bench.server.add_file("torch", &bench.wheel.file, longer, None);
    }), @r"
    error: `torch-2.13.0-py3-none-any.whl` from http://[server]/files/torch-2.13.0-py3-none-any.whl is not the file that is pinned: it has [n] bytes, but [n] are pinned
    hint: the file was damaged or replaced: try another index with `--index URL`; nothing of it was kept
    ");
}

#[test]
fn something_else_than_an_index() {
    let page = |kind: &'static str, body: &'static str| failing(|bench| bench.server.fault(Target::Pages, Fault::Other(kind, body)));
    let messages = [
        page("image/png", "PNG"),
        page("application/vnd.pypi.simple.v1+json", "{\"meta\": {\"api-version\": \"2.0\"}, \"files\": []}"),
        page("application/vnd.pypi.simple.v1+json", "{\"meta\""),
        page("text/html", "<h1>Welcome to the hotel's network</h1>"),
    ];
    insta::assert_snapshot!(messages.join("\n"), @r"
    error: http://[server]/simple/torch/ is not a page of a package index: its content type is `image/png`
    hint: is the index the right one? another can be given with `--index URL`
    error: http://[server]/simple/torch/ is not a page of a package index: it speaks version 2.0 of the simple API, not 1
    hint: is the index the right one? another can be given with `--index URL`
    error: http://[server]/simple/torch/ is not a page of a package index: its JSON is damaged: EOF while parsing an object at line 1 column 7
    hint: is the index the right one? another can be given with `--index URL`
    error: the index http://[server]/simple/ does not list `torch-2.13.0-py3-none-any.whl`
    hint: another index can be given with `--index URL`; a mirror must carry the same files as the original
    ");
}

#[test]
fn only_the_given_proxy_is_used() {
    let bench = Bench::new();
    let options = AgentOptions { proxies: Proxies::all("http://me:secret@127.0.0.1:9"), ..AgentOptions::default() };
    let url = format!("{}torch/", bench.index).parse().unwrap();
    let request = Request::new(url);
    let error = UreqTransport::new(&options).unwrap().get(&request).unwrap_err();
    let trouble = ProxyTrouble::Refused;
    assert_eq!(error.fault, HttpFault::Proxy { proxy: "127.0.0.1:9".to_owned(), trouble });
    let options = AgentOptions { proxies: Proxies::all("nonsense://me:secret@host:1"), ..AgentOptions::default() };
    insta::assert_snapshot!(UreqTransport::new(&options).unwrap_err().to_string(), @"the proxy `host:1` cannot be used: it is not of the form `http://host:port`");
    let options = AgentOptions { trust: Trust { extra: vec!["/nonexistent/ca.pem".into()] }, ..AgentOptions::default() };
    insta::assert_snapshot!(UreqTransport::new(&options).unwrap_err().to_string(), @"cannot read the certificates of `/nonexistent/ca.pem`: No such file or directory (os error 2)");
}

#[test]
fn a_remembered_place_is_not_asked_for_again() {
    let bench = Bench::new();
    bench.fetch().unwrap();
    std::fs::remove_dir_all(bench.cache().join("toolchains-v1")).unwrap();
    bench.server.clear_log();
    bench.fetch().unwrap();
    assert_eq!(bench.server.log().requests("/simple/"), 0);
}

#[test]
fn a_remembered_place_that_is_gone_is_looked_up_once() {
    let bench = Bench::new();
    bench.fetch().unwrap();
    std::fs::remove_dir_all(bench.cache().join("toolchains-v1")).unwrap();
    bench.server.clear_log();
    bench.server.fault_times(Target::Files, Fault::Status(404), 2, Some(1));
    let dir = bench.fetch().unwrap();
    bench.assert_tree(&dir);
    assert_eq!(bench.server.log().requests("/simple/"), 1);
    // And if it is gone there as well, that is it.
    std::fs::remove_dir_all(bench.cache().join("toolchains-v1")).unwrap();
    bench.server.clear_log();
    bench.server.fault(Target::Files, Fault::Status(404));
    bench.fetch().unwrap_err();
    bench.assert_clean();
    assert_eq!((bench.server.log().requests("/simple/"), bench.server.log().requests("/files/")), (1, 2));
}
