//! A local package index for tests, with faults on request.
//!
//! [`MirrorServer`] passes on what a real index has and counts every byte. [`FixtureServer`] serves synthetic wheels, made
//! by [`WheelBuilder`], and goes wrong in every way that a test asks for. Both run on loopback only.

mod fixture;
mod http;
mod log;
mod mirror;
mod proxy;
mod wheel;

pub use fixture::{Fault, FixtureServer, Target};
pub use http::{Ending, Framing, Handler, Request, Response, Server};
pub use log::{Entry, Log};
pub use mirror::{MirrorOptions, MirrorServer};
pub use proxy::{ProxyServer, Tunnel};
pub use wheel::{Member, Wheel, WheelBuilder, noise};
