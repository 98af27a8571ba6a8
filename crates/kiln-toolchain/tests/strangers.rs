//! Servers, pages and stores as strangers have them: old protocols, odd answers, redirects to anywhere, pages written by hand.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod common;

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use common::{Bench, PLATFORM, files_below, torch, version};
use kiln_test_server::{Fault, FixtureServer, Framing, ProxyServer, Request, Response, Server, Target};
use kiln_toolchain::{Error, ProvisionOptions, Provisioner, Proxies};

/// The first line of what is said of a fetch with a fault in the answers for files; nothing is left behind.
fn refused(fault: Fault) -> String {
    let mut bench = Bench::with(torch().build());
    bench.read_timeout = Duration::from_secs(5);
    bench.server.fault(Target::Files, fault);
    let error = bench.fetch().unwrap_err();
    bench.assert_clean();
    bench.shown(&error).lines().next().unwrap().to_owned()
}

#[test]
fn answers_of_any_framing_are_understood() {
    for framing in [Framing::Chunked, Framing::Old, Framing::UntilClosed] {
        for (html, ranges) in [(false, true), (true, true), (false, false)] {
            let bench = Bench::with(torch().build());
            if html {
                bench.server.html_only();
            }
            bench.server.fault(Target::Pages, Fault::Framed(framing));
            bench.server.fault(Target::Files, Fault::Framed(framing));
            if !ranges {
                bench.server.fault(Target::Files, Fault::NoRanges);
            }
            let dir = bench.fetch().unwrap_or_else(|error| panic!("{framing:?} {html} {ranges}: {error}"));
            assert_eq!(files_below(&dir).len(), 21, "{framing:?}");
            assert_eq!(bench.told().iter().filter(|told| told.starts_with("retry")).count(), 0, "{framing:?}: {:?}", bench.told());
        }
    }
}

#[test]
fn bodies_that_break_off_in_any_framing_are_asked_for_again() {
    for framing in [Framing::Chunked, Framing::Old, Framing::UntilClosed] {
        let bench = Bench::with(torch().build());
        bench.server.fault(Target::Files, Fault::Framed(framing));
        bench.server.fault_times(Target::Files, Fault::Cut(100), 1, Some(1));
        let dir = bench.fetch().unwrap_or_else(|error| panic!("{framing:?}: {error}"));
        assert_eq!(files_below(&dir).len(), 21, "{framing:?}");
        // The same where the server knows no ranges and does not say how much there is to come.
        let bench = Bench::with(torch().build());
        bench.server.fault(Target::Files, Fault::Framed(framing));
        bench.server.fault(Target::Files, Fault::NoRanges);
        bench.server.fault_times(Target::Files, Fault::Cut(5000), 0, Some(1));
        let dir = bench.fetch().unwrap_or_else(|error| panic!("{framing:?}: {error}"));
        assert_eq!(files_below(&dir).len(), 21, "{framing:?}");
    }
}

#[test]
fn answers_to_range_requests_that_make_no_sense() {
    insta::assert_snapshot!([
        refused(Fault::NoContentRange),
        refused(Fault::Multipart),
        refused(Fault::OtherRange(1)),
        refused(Fault::Short(1)),
        refused(Fault::NoSuchBytes(12)),
    ].join("\n"), @r"
    error: cannot fetch `torch-2.13.0-py3-none-any.whl`: http://[server]/files/torch-2.13.0-py3-none-any.whl: the server answers a range request without saying which range it sends
    error: cannot fetch `torch-2.13.0-py3-none-any.whl`: http://[server]/files/torch-2.13.0-py3-none-any.whl: the server answers a range request without saying which range it sends
    error: cannot fetch `torch-2.13.0-py3-none-any.whl`: http://[server]/files/torch-2.13.0-py3-none-any.whl: the server was asked for bytes [n]-[n] and sends [n]-[n]
    error: cannot fetch `torch-2.13.0-py3-none-any.whl`: http://[server]/files/torch-2.13.0-py3-none-any.whl: the answer ended after 0 of 1 bytes
    error: `torch-2.13.0-py3-none-any.whl` from http://[server]/files/torch-2.13.0-py3-none-any.whl is not the file that is pinned: it has 12 bytes, but [n] are pinned
    ");
}

#[test]
fn redirects_to_nowhere_and_to_strange_places() {
    let to = |address: &str| refused(Fault::RedirectAnywhere(address.to_owned()));
    insta::assert_snapshot!([
        to("file:///etc/passwd"),
        to("ftp://127.0.0.1/x"),
        to("http://"),
        to("http://127.0.0.1:1/x?token=hush#hush"),
        to("http://me:hush@127.0.0.1:1/x"),
        to(""),
    ].join("\n"), @r"
    error: cannot fetch `torch-2.13.0-py3-none-any.whl`: http://[server]/files/torch-2.13.0-py3-none-any.whl: a redirect to an address that is neither `https:` nor `http:`
    error: cannot fetch `torch-2.13.0-py3-none-any.whl`: http://[server]/files/torch-2.13.0-py3-none-any.whl: a redirect to an address that is neither `https:` nor `http:`
    error: cannot fetch `torch-2.13.0-py3-none-any.whl`: http://[server]/files/torch-2.13.0-py3-none-any.whl: a redirect to something that is no address
    error: cannot fetch `torch-2.13.0-py3-none-any.whl`: http://127.0.0.1:1/x: the connection was refused
    error: cannot fetch `torch-2.13.0-py3-none-any.whl`: http://127.0.0.1:1/x: the connection was refused
    error: cannot fetch `torch-2.13.0-py3-none-any.whl`: http://[server]/files/torch-2.13.0-py3-none-any.whl: more than 8 redirects
    ");
}

/// What stands in the address of the index is for its server alone, wherever pages and files are moved to, and however often.
#[test]
fn logins_do_not_follow_redirects_to_other_servers() {
    let other = FixtureServer::start().unwrap();
    for target in [Target::Pages, Target::Files] {
        for (address, seen_elsewhere) in [("localhost", false), ("127.0.0.1", false)] {
            let mut bench = Bench::with(torch().build());
            other.add("torch", &bench.wheel);
            other.clear_log();
            bench.server.demand("us:index-hush");
            bench.index = bench.server.index().replace("http://", "http://us:index-hush@");
            // Another name, and the same name with another port.
            bench.server.fault(target, Fault::RedirectTo(other.url().replace("127.0.0.1", address)));
            bench.fetch().unwrap();
            let seen: Vec<_> = other.log().entries.into_iter().filter_map(|entry| entry.authorization).collect();
            assert_eq!(!seen.is_empty(), seen_elsewhere, "{target:?} {address}: {seen:?}");
            assert!(!other.log().entries.is_empty());
        }
    }
    // Nor does one that a redirect brings along get anywhere.
    let bench = Bench::with(torch().build());
    other.add("torch", &bench.wheel);
    other.clear_log();
    let with_login = other.url().replace("http://", "http://me:hush@");
    bench.server.fault(Target::Files, Fault::RedirectAnywhere(format!("{with_login}/files/{}", bench.wheel.file)));
    bench.fetch().unwrap();
    assert!(other.log().entries.iter().all(|entry| entry.authorization.is_none()), "{:?}", other.log());
}

/// A page as it is written by hand: another base, escaped names, digests of other kinds, withdrawn files, and links to anything.
#[test]
fn a_page_that_was_written_by_hand() {
    let mut bench = Bench::with(torch().build());
    let (file, sha256) = (bench.wheel.file.clone(), bench.wheel.sha256.clone());
    let bytes = bench.wheel.bytes.clone();
    let page = |link: &str| {
        format!(
            "<html><head><base href='/deep/er/'></head><body><!-- <a href=\"/no/{file}#sha256={}\">{file}</a> -->\n\
             <a href=\"mailto:a@b\">us</a> <a href=\"../\">up</a> <a href=\"/x/torch-2.13.0.tar.gz#sha256={sha256}\">source</a>\n\
             <a data-yanked=\"broken\" data-requires-python=\"&gt;=3.99\" HREF={link}>any text</a></body></html>",
            "0".repeat(64)
        )
    };
    let escaped = file.replace('2', "%32").replace('-', "%2D");
    for link in [
        format!("../files/{escaped}#sha256={sha256}"),
        format!("'../files/{escaped}?x=1&amp;y=2#sha256={}'", sha256.to_ascii_uppercase()),
        format!("\"//ADDRESS/files/{file}\""),
        format!("../files/{file}#md5=0123456789abcdef0123456789abcdef"),
        format!("../files/{file}#sha512={}", "ab".repeat(64)),
    ] {
        let (bytes, page, wanted) =
            (bytes.clone(), page(&link), [format!("/deep/files/{escaped}"), format!("/deep/files/{file}"), format!("/files/{file}")]);
        let handler = move |request: &Request| {
            let host = request.headers.get("host").cloned().unwrap_or_default();
            match request.path.as_str() {
                "/simple/torch/" => Response::new(200, page.replace("ADDRESS", &host)).with("content-type", "text/html"),
                path if wanted.iter().any(|wanted| wanted == path) => {
                    let Some(range) = request.range(bytes.len() as u64) else { return Response::new(200, bytes.clone()) };
                    let part = &bytes[usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap()];
                    let content_range = format!("bytes {}-{}/{}", range.start, range.end - 1, bytes.len());
                    Response::new(206, part).with("content-range", content_range)
                }
                _ => Response::new(404, "nothing"),
            }
        };
        let server = Server::start(0, None, Box::new(handler)).unwrap();
        bench.index = format!("{}/simple/", server.url());
        let dir = bench.fetch().unwrap_or_else(|error| panic!("{link}: {error}"));
        assert_eq!(files_below(&dir).len(), 21);
        fs::remove_dir_all(bench.cache()).unwrap();
    }
}

/// A store below a path with everything in it that a path may have.
#[test]
fn a_store_at_an_odd_place() {
    let mut bench = Bench::with(torch().build());
    let odd = bench.dir.path().join("a b\u{e9}\u{4e2d} 'c' $d %20 #e ;f\\g");
    let options = ProvisionOptions { cache_dir: odd.clone(), lower: Vec::new(), offline: false, retry: bench.retry };
    let network = || {
        let transport = Arc::new(kiln_toolchain::UreqTransport::new(&kiln_toolchain::AgentOptions::default())?);
        Ok(kiln_toolchain::Network::new(kiln_toolchain::IndexUrl::parse(&bench.server.index()).unwrap(), transport))
    };
    let provisioner = Provisioner::new(&bench.catalog, options, &network, &|_| {});
    let dir = provisioner.fetch(&version(), PLATFORM).unwrap();
    assert!(dir.starts_with(&odd));
    provisioner.verify(&version(), PLATFORM).unwrap();
    // And read by others, where it cannot be written to.
    bench.lower = vec![odd.clone()];
    bench.offline = true;
    assert_eq!(bench.fetch().unwrap(), dir);
    assert!(!bench.cache().join("toolchains-v1/trees").exists());
}

/// Processes that fetch, and others that remove what nobody names, all with one store: a fetch never fails for it, and what it gives
/// stays whole for as long as its process lives.
#[test]
fn fetches_while_the_store_is_collected() {
    let bench = Bench::with(torch().build());
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let collectors: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let (mut removed, mut in_use) = (0, 0);
                    while !done.load(std::sync::atomic::Ordering::Relaxed) {
                        let collected = bench.provision(|p| p.collect(&[], &[], false)).unwrap();
                        removed += collected.removed.len();
                        in_use += collected.in_use.len();
                    }
                    (removed, in_use)
                })
            })
            .collect();
        let fetchers: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    for _ in 0..20 {
                        bench.provision(|provisioner| {
                            let dir = provisioner.fetch(&version(), PLATFORM).unwrap();
                            assert_eq!(files_below(&dir).len(), 21);
                            std::thread::sleep(Duration::from_millis(2));
                            provisioner.verify(&version(), PLATFORM).unwrap();
                        });
                    }
                })
            })
            .collect();
        let fetched: Vec<_> = fetchers.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        let collected: Vec<(usize, usize)> = collectors.into_iter().map(|thread| thread.join().unwrap()).collect();
        assert!(fetched.iter().all(Result::is_ok));
        assert!(collected.iter().map(|(removed, _)| removed).sum::<usize>() > 0, "{collected:?}");
        assert!(collected.iter().map(|(_, in_use)| in_use).sum::<usize>() > 0, "{collected:?}");
    });
    assert_eq!(files_below(&bench.cache().join("toolchains-v1/work")), Vec::<String>::new());
}

/// A wheel that is another one at each request is never taken for one.
#[test]
fn a_server_that_is_never_the_same() {
    let bench = Bench::new();
    for passed in 1..4 {
        bench.server.heal();
        for request in 0..8 {
            if request % 2 == passed % 2 {
                bench.server.fault_times(Target::Files, Fault::OtherEtag, request, Some(1));
            }
        }
        let error = bench.fetch().unwrap_err();
        assert!(matches!(error, Error::Changed { .. }), "{error}");
        bench.assert_clean();
    }
}

/// Proxies in the forms that other programs take, passwords with letters that an address cannot hold among them.
#[test]
fn proxies_as_people_write_them() {
    for (demanded, written) in [
        (None, "ADDRESS"),
        (None, "http://ADDRESS"),
        (None, "HTTP://ADDRESS/"),
        (Some("pu:p@s/s:w#%"), "http://pu:p%40s%2Fs%3Aw%23%25@ADDRESS"),
        (Some("p u:x"), "http://p%20u:x@ADDRESS/"),
        (Some("pu:"), "http://pu@ADDRESS"),
    ] {
        let proxy = ProxyServer::start(demanded).unwrap();
        let mut bench = Bench::with(torch().build());
        bench.proxies = Proxies::all(&written.replace("ADDRESS", &proxy.address()));
        bench.fetch().unwrap_or_else(|error| panic!("{written}: {error}"));
        assert!(!proxy.tunnels().is_empty(), "{written}");
    }
    // One that is no proxy, and one that is not there.
    let mut bench = Bench::with(torch().build());
    bench.retry.attempts = 1;
    let web = Server::start(0, None, Box::new(|_: &Request| Response::new(200, "welcome"))).unwrap();
    bench.proxies = Proxies::all("http://pu:hush@127.0.0.1:1");
    let gone = bench.fetch().unwrap_err().to_string();
    bench.proxies = Proxies::all(&web.url().replace("http://", "http://pu:hush@"));
    let none = bench.fetch().unwrap_err().to_string();
    assert!(gone.ends_with("the proxy `127.0.0.1:1` refused the connection"), "{gone}");
    let address = web.url().replace("http://", "");
    assert!(none.contains(&format!("the proxy `{address}`")), "{none}");
    // A proxy that says why: to nobody without a password, or because it cannot reach the server itself.
    for status in [403, 407, 502, 503] {
        let refusing = Server::start(0, None, Box::new(move |_: &Request| Response::new(status, "no"))).unwrap();
        bench.proxies = Proxies::all(&refusing.url().replace("http://", "http://pu:hush@"));
        let error = bench.fetch().unwrap_err().to_string();
        let proxy = refusing.url().replace("http://", "");
        assert!(error.ends_with(&format!("the proxy `{proxy}` answered {status}")) && !error.contains("hush"), "{error}");
    }
    bench.proxies = Proxies::all("http://pu:hush@no-such-host.invalid:1");
    let unknown = bench.fetch().unwrap_err().to_string();
    assert!(unknown.contains("the proxy `no-such-host.invalid:1`"), "{unknown}");
    assert!(!gone.contains("hush") && !none.contains("hush") && !unknown.contains("hush"), "{gone} {none} {unknown}");
    bench.assert_clean();
}
