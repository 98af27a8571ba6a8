//! Runs a counting mirror of a package index for scripts, until it is killed.
//!
//! `kiln-test-server UPSTREAM-INDEX-URL [--port N] [--cache DIR] [--log FILE]` prints the address of its own simple index on
//! the first line of stdout.

use std::process::ExitCode;

use kiln_test_server::{MirrorOptions, MirrorServer};

const USAGE: &str = "usage: kiln-test-server UPSTREAM-INDEX-URL [--port N] [--cache DIR] [--log FILE]";

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for scripts")]
fn main() -> ExitCode {
    let Some((upstream, options)) = arguments() else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    match MirrorServer::start(&upstream, &options) {
        Ok(server) => {
            println!("{}", server.index());
            loop {
                std::thread::park();
            }
        }
        Err(cause) => {
            eprintln!("error: {cause}");
            ExitCode::FAILURE
        }
    }
}

/// Upstream and options.
fn arguments() -> Option<(String, MirrorOptions)> {
    let mut arguments = std::env::args().skip(1);
    let mut upstream = None;
    let mut options = MirrorOptions::default();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--port" => options.port = arguments.next()?.parse().ok()?,
            "--cache" => options.cache = Some(arguments.next()?.into()),
            "--log" => options.log = Some(arguments.next()?.into()),
            url if upstream.is_none() && !url.starts_with('-') => upstream = Some(url.to_owned()),
            _ => return None,
        }
    }
    Some((upstream?, options))
}
