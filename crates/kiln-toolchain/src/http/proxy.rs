//! Which proxy a request goes through: decided from the variables that other programs read, without reading them here.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

use url::{Host, Url};

/// Proxies by the scheme of the address, and the hosts that are reached without one.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Proxies {
    /// For `http:` addresses, such as `http://user:password@proxy.example.org:3128`.
    pub http: Option<String>,
    /// For `https:` addresses.
    pub https: Option<String>,
    /// Hosts without a proxy, in the form of the variable `NO_PROXY`: names separated by commas or white space, each for
    /// itself and all below it, with a port or without, addresses and networks in CIDR form; `*` for all.
    pub exempt: String,
}

impl fmt::Debug for Proxies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |proxy: &Option<String>| proxy.as_deref().map(shown_proxy);
        f.debug_struct("Proxies")
            .field("http", &shown(&self.http))
            .field("https", &shown(&self.https))
            .field("exempt", &self.exempt)
            .finish()
    }
}

impl Proxies {
    /// The proxies that an environment names: `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy`, the lower-case name
    /// before the upper-case one. `HTTP_PROXY` does not count for a program that a web server has started
    /// (`REQUEST_METHOD`): it is then a header of a stranger's request. An empty value switches a proxy off.
    pub fn of_environment(environment: &BTreeMap<String, String>) -> Self {
        let get = |name: &str| environment.get(name).map(|value| value.trim());
        let either = |lower: &str, upper: &str| {
            get(lower).or_else(|| get(upper).filter(|_| upper != "HTTP_PROXY" || get("REQUEST_METHOD").is_none()))
        };
        let all = either("all_proxy", "ALL_PROXY");
        let proxy = |lower, upper| either(lower, upper).or(all).filter(|value| !value.is_empty()).map(str::to_owned);
        Self {
            http: proxy("http_proxy", "HTTP_PROXY"),
            https: proxy("https_proxy", "HTTPS_PROXY"),
            exempt: either("no_proxy", "NO_PROXY").unwrap_or_default().to_owned(),
        }
    }

    /// One proxy for everything, as pip's `proxy` setting means it.
    pub fn all(proxy: &str) -> Self {
        Self { http: Some(proxy.to_owned()), https: Some(proxy.to_owned()), exempt: String::new() }
    }

    /// Whether `url` is reached without a proxy.
    pub(crate) fn exempts(&self, url: &Url) -> bool {
        let entries = self.exempt.split([',', ' ', '\t']).map(str::trim).filter(|entry| !entry.is_empty());
        entries.into_iter().any(|entry| exempts(entry, url))
    }
}

/// Whether one entry of `NO_PROXY` is about the host of `url`.
fn exempts(entry: &str, url: &Url) -> bool {
    let Some(host) = url.host() else { return false };
    let address = match host {
        Host::Ipv4(address) => Some(IpAddr::V4(address)),
        Host::Ipv6(address) => Some(IpAddr::V6(address)),
        Host::Domain(_) => None,
    };
    if entry == "*" {
        return true;
    }
    if let Some((network, bits)) = entry.split_once('/') {
        let network = network.trim_matches(['[', ']']).parse().ok();
        return network.zip(bits.parse().ok()).zip(address).is_some_and(|((network, bits), address)| contains(network, bits, address));
    }
    if let Ok(named) = entry.trim_matches(['[', ']']).parse::<IpAddr>() {
        return Some(named) == address;
    }
    let (name, port) = match entry.rsplit_once(':').map(|(name, port)| (name, port.parse::<u16>())) {
        Some((name, Ok(port))) => (name, Some(port)),
        _ => (entry, None),
    };
    if port.is_some() && port != url.port_or_known_default() {
        return false;
    }
    if let Ok(named) = name.trim_matches(['[', ']']).parse::<IpAddr>() {
        return Some(named) == address;
    }
    let Host::Domain(host) = host else { return false };
    let name = name.strip_prefix('*').unwrap_or(name).trim_matches('.').to_ascii_lowercase();
    let host = host.trim_end_matches('.');
    !name.is_empty() && (host == name || host.strip_suffix(&name).is_some_and(|rest| rest.ends_with('.')))
}

/// Whether the first `bits` bits of the two addresses are equal.
fn contains(network: IpAddr, bits: u32, address: IpAddr) -> bool {
    let (network, address, width) = match (network, address) {
        (IpAddr::V4(network), IpAddr::V4(address)) => (u128::from(network.to_bits()), u128::from(address.to_bits()), 32),
        (IpAddr::V6(network), IpAddr::V6(address)) => (network.to_bits(), address.to_bits(), 128),
        _ => return false,
    };
    bits <= width && (network ^ address).checked_shr(width - bits).unwrap_or(0) == 0
}

/// A proxy setting as it may be shown: its host, and its port where it names one. Of a setting that is no address nothing is shown.
pub(super) fn shown_proxy(text: &str) -> String {
    let text = text.trim();
    let whole = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let address = Url::parse(&whole).ok().filter(Url::has_host);
    let Some((address, host)) = address.as_ref().and_then(|address| Some((address, address.host_str()?))) else {
        return "***".to_owned();
    };
    match address.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&str, &str)]) -> Proxies {
        Proxies::of_environment(&pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn variables_in_both_spellings() {
        let shown = |pairs: &[(&str, &str)]| {
            let proxies = of(pairs);
            format!("{} {} {}", proxies.http.unwrap_or_default(), proxies.https.unwrap_or_default(), proxies.exempt)
        };
        assert_eq!(shown(&[("HTTP_PROXY", "a"), ("HTTPS_PROXY", "b"), ("NO_PROXY", "c")]), "a b c");
        assert_eq!(shown(&[("http_proxy", "a"), ("HTTP_PROXY", "x"), ("no_proxy", "c"), ("NO_PROXY", "x")]), "a  c");
        assert_eq!(shown(&[("ALL_PROXY", "a"), ("https_proxy", "b")]), "a b ");
        assert_eq!(shown(&[("ALL_PROXY", "a"), ("https_proxy", "")]), "a  ");
        assert_eq!(shown(&[("HTTP_PROXY", "a"), ("REQUEST_METHOD", "GET")]), "  ");
        assert!(!format!("{:?}", of(&[("ALL_PROXY", "http://me:secret@host:1")])).contains("secret"));
    }

    #[test]
    fn a_proxy_is_shown_by_its_host() {
        for (text, shown) in [
            ("http://pu:hush@proxy.example:3128/hush?hush", "proxy.example:3128"),
            ("pu:hush@proxy.example:3128", "proxy.example:3128"),
            ("proxy.example", "proxy.example"),
            ("127.0.0.1:9", "127.0.0.1:9"),
            ("socks5://hush@[::1]:1080", "[::1]:1080"),
            ("hush:hush", "***"),
            ("http://pu:hush", "***"),
            ("", "***"),
        ] {
            assert_eq!(shown_proxy(text), shown, "{text}");
        }
    }

    #[test]
    fn hosts_without_a_proxy() {
        let exempts =
            |exempt: &str, url: &str| Proxies { exempt: exempt.to_owned(), ..Proxies::default() }.exempts(&Url::parse(url).unwrap());
        let index = "https://index.example.org/simple";
        for exempt in
            ["*", "example.org", ".example.org", "*.example.org", "a, INDEX.example.org", "example.org:443", "x index.example.org."]
        {
            assert!(exempts(exempt, index), "{exempt}");
        }
        for exempt in ["", "ample.org", "example.org:80", "x.index.example.org", "example.or", ".", ":443", "10.0.0.0/8"] {
            assert!(!exempts(exempt, index), "{exempt}");
        }
        for (exempt, url) in [
            ("127.0.0.1", "http://127.0.0.1:81/"),
            ("10.0.0.0/8", "http://10.1.2.3/"),
            ("127.0.0.1:81", "http://127.0.0.1:81/"),
            ("::1", "http://[::1]:81/"),
            ("[fe80::]/10", "http://[fe80::2]/"),
            ("0.0.0.0/0", "http://1.2.3.4/"),
        ] {
            assert!(exempts(exempt, url), "{exempt} {url}");
        }
        for (exempt, url) in [
            ("10.0.0.0/8", "http://11.1.2.3/"),
            ("10.0.0.0/99", "http://10.0.0.0/"),
            ("0.0.0.0/0", "http://[::1]/"),
            ("127.0.0.1:80", "http://127.0.0.1:81/"),
        ] {
            assert!(!exempts(exempt, url), "{exempt} {url}");
        }
    }
}
