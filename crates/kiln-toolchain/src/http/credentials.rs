//! User names and passwords: where they come from, and which server may see them. None is ever printed.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::Path;

use data_encoding::BASE64;
use url::{Origin, Url};

use super::IndexUrl;
use crate::error::Error;

/// A user name and a password.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Login {
    pub(super) user: Vec<u8>,
    pub(super) password: Option<Vec<u8>>,
}

impl Login {
    /// The value of an `Authorization` header (RFC 7617).
    fn header(&self) -> String {
        let plain = [self.user.as_slice(), b":", self.password.as_deref().unwrap_or_default()].concat();
        format!("Basic {}", BASE64.encode(&plain))
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Login(..)")
    }
}

/// Logins by machine, as a netrc file has them.
///
/// The format is that of the `ftp` program's manual, as Python's `netrc` module reads it. What is not understood is passed
/// over: the file belongs to other programs as well.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Netrc {
    machines: Vec<(String, Login)>,
    default: Option<Login>,
}

impl fmt::Debug for Netrc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Netrc(..)")
    }
}

impl Netrc {
    /// The logins of the user's netrc file: the one that `NETRC` of `environment` names, which must be there, else the one in the home.
    ///
    /// # Errors
    /// [`Error::Netrc`] when the one that is named cannot be read.
    pub fn of_user(environment: &BTreeMap<String, String>, current_dir: &Path) -> Result<Self, Error> {
        let variable = |name: &str| environment.get(name).filter(|value| !value.is_empty());
        if let Some(path) = variable("NETRC").map(|path| current_dir.join(path)) {
            let text = fs::read(&path).map_err(|source| Error::Netrc { path, source })?;
            return Ok(Self::parse(&String::from_utf8_lossy(&text)));
        }
        let text = variable("HOME").and_then(|home| fs::read(Path::new(home).join(".netrc")).ok());
        Ok(text.map(|text| Self::parse(&String::from_utf8_lossy(&text))).unwrap_or_default())
    }

    /// Reads the text of a netrc file. Of several logins for one machine the first counts.
    pub fn parse(text: &str) -> Self {
        let mut netrc = Self::default();
        let mut rest = text;
        // The machine of the entry that is being read (none for the default), and what is known of its login.
        let mut entry: Option<(Option<String>, Login)> = None;
        while let Some((word, after)) = word(rest) {
            rest = after;
            match word.as_str() {
                "machine" => {
                    netrc.add(entry.take());
                    let Some((name, after)) = self::word(rest) else { break };
                    rest = after;
                    entry = Some((Some(name.to_ascii_lowercase()), Login { user: Vec::new(), password: None }));
                }
                "default" => {
                    netrc.add(entry.take());
                    entry = Some((None, Login { user: Vec::new(), password: None }));
                }
                "login" | "user" | "account" | "password" => {
                    let Some((value, after)) = self::word(rest) else {
                        // Cut off: what is there of it is no login.
                        entry = None;
                        break;
                    };
                    rest = after;
                    match (&mut entry, word.as_str()) {
                        (Some((_, login)), "password") => login.password = Some(value.into_bytes()),
                        (Some((_, login)), "login" | "user") => login.user = value.into_bytes(),
                        _ => {}
                    }
                }
                // A macro ends with an empty line.
                "macdef" => rest = rest.find("\n\n").and_then(|end| rest.get(end..)).unwrap_or_default(),
                comment if comment.starts_with('#') => {
                    // The word is not always the whole comment: the rest of its line goes with it.
                    rest = comment_end(text, rest);
                }
                _ => {}
            }
        }
        netrc.add(entry);
        netrc
    }

    fn add(&mut self, entry: Option<(Option<String>, Login)>) {
        match entry {
            Some((_, login)) if login.password.is_none() && login.user.is_empty() => {}
            Some((Some(machine), login)) => self.machines.push((machine, login)),
            Some((None, login)) => {
                self.default.get_or_insert(login);
            }
            None => {}
        }
    }

    /// The login for a machine by name, of `user` where one is given.
    fn machine(&self, host: &str, user: Option<&[u8]>) -> Option<&Login> {
        let named = |entry: &&(String, Login)| entry.0 == host && user.is_none_or(|user| entry.1.user == user);
        self.machines.iter().find(named).map(|(_, login)| login)
    }
}

/// What follows the line in which `rest` begins; if the word before it ended its line, that is `rest` itself.
fn comment_end<'t>(text: &'t str, rest: &'t str) -> &'t str {
    let before = text.get(..text.len() - rest.len()).unwrap_or_default();
    if before.ends_with('\n') { rest } else { rest.split_once('\n').map_or("", |(_, after)| after) }
}

/// The next word, and what follows it and one white space. A word in double quotes may hold white space; a backslash
/// takes the next letter as it is.
fn word(text: &str) -> Option<(String, &str)> {
    let text = text.trim_start();
    let quoted = text.starts_with('"');
    let mut word = String::new();
    let mut letters = text.char_indices().skip(usize::from(quoted));
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => word.extend(letters.next().map(|(_, letter)| letter)),
            '"' if quoted => return Some((word, text.get(at + 1..).unwrap_or_default())),
            letter if !quoted && letter.is_whitespace() => {
                return Some((word, text.get(at + letter.len_utf8()..).unwrap_or_default()));
            }
            letter => word.push(letter),
        }
    }
    (!text.is_empty()).then_some((word, ""))
}

/// Which server is shown which login.
///
/// What stands in the address of an index goes to that server (scheme, host and port) and no other. What netrc has for a
/// machine goes to that machine; its default goes to the servers of the indexes only, which a user has named, and never
/// to one that a page or a redirect leads to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Credentials {
    logins: Vec<(Origin, Login)>,
    indexes: Vec<Origin>,
    netrc: Netrc,
}

impl Credentials {
    /// Those that stand in the addresses of the indexes, and in netrc.
    pub(crate) fn new<'i>(indexes: impl IntoIterator<Item = &'i IndexUrl>, netrc: &Netrc) -> Self {
        let mut credentials = Self { netrc: netrc.clone(), ..Self::default() };
        for index in indexes {
            let origin = index.url().origin();
            if let Some(login) = index.login() {
                let mut login = login.clone();
                if login.password.is_none()
                    && let Some(known) = index.url().host_str().and_then(|host| netrc.machine(host, Some(&login.user)))
                {
                    login.password.clone_from(&known.password);
                }
                credentials.logins.push((origin.clone(), login));
            }
            credentials.indexes.push(origin);
        }
        credentials
    }

    /// The `Authorization` header for `url`, if its server may see one.
    pub(crate) fn header_for(&self, url: &Url) -> Option<String> {
        let origin = url.origin();
        let host = url.host_str()?;
        let given = self.logins.iter().find(|(known, _)| *known == origin).map(|(_, login)| login);
        let default = || self.netrc.default.as_ref().filter(|_| self.indexes.contains(&origin));
        given.or_else(|| self.netrc.machine(host, None)).or_else(default).map(Login::header)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(credentials: &Credentials, url: &str) -> Option<String> {
        let header = credentials.header_for(&Url::parse(url).unwrap())?;
        Some(String::from_utf8(BASE64.decode(header.strip_prefix("Basic ").unwrap().as_bytes()).unwrap()).unwrap())
    }

    #[test]
    fn what_stands_in_an_address_goes_to_its_server_only() {
        let index = IndexUrl::parse("https://me:p%40ss@example.org/simple").unwrap();
        let credentials = Credentials::new([&index], &Netrc::default());
        assert_eq!(header(&credentials, "https://example.org/files/a.whl").as_deref(), Some("me:p@ss"));
        for other in ["https://files.example.org/a.whl", "http://example.org/a.whl", "https://example.org:8443/a.whl"] {
            assert_eq!(header(&credentials, other), None, "{other}");
        }
        assert!(!format!("{credentials:?} {index:?}").contains("p@ss"));
    }

    #[test]
    fn netrc_files_are_read_as_other_programs_read_them() {
        let text = "# a comment with machine words\nmachine one.example login me password s#cret\n\
                    machine two.example\n\tlogin \"a b\"\n  password \"x \\\" y\"\nmacdef init\nput machine three.example\n\n\
                    machine one.example login other password second\n# last\nmachine four.example account x password only\n\
                    default login anyone password everywhere\n";
        let index = IndexUrl::parse("https://index.example/simple").unwrap();
        let other = IndexUrl::parse("https://other@one.example/simple").unwrap();
        let credentials = Credentials::new([&index], &Netrc::parse(text));
        let shown = |url: &str| header(&credentials, url);
        assert_eq!(shown("https://one.example/x").as_deref(), Some("me:s#cret"));
        assert_eq!(shown("https://ONE.example:81/x").as_deref(), Some("me:s#cret"));
        assert_eq!(shown("https://two.example/x").as_deref(), Some("a b:x \" y"));
        assert_eq!(shown("https://three.example/x"), None);
        assert_eq!(shown("https://four.example/x").as_deref(), Some(":only"));
        // The default is for servers that a user has named.
        assert_eq!(shown("https://index.example/x").as_deref(), Some("anyone:everywhere"));
        assert_eq!(shown("https://redirected.example/x"), None);
        // A user without a password in the address has the password of that user.
        assert_eq!(header(&Credentials::new([&other], &Netrc::parse(text)), "https://one.example/x").as_deref(), Some("other:second"));
    }

    #[test]
    fn a_login_that_is_cut_off_is_none() {
        for text in ["machine one.example login me password", "machine one.example login me password \n", "machine one.example login"] {
            let credentials = Credentials::new([], &Netrc::parse(text));
            assert_eq!(header(&credentials, "https://one.example/x"), None, "{text:?}");
        }
        // What stands before it counts.
        let text = "machine one.example login me password secret\nmachine two.example login you password";
        let credentials = Credentials::new([], &Netrc::parse(text));
        assert_eq!(header(&credentials, "https://one.example/x").as_deref(), Some("me:secret"));
        assert_eq!(header(&credentials, "https://two.example/x"), None);
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_fail(text in "(machine|default|login|password|macdef|[ \n\t\"\\\\#a-zé.]){0,40}") {
            Netrc::parse(&text);
        }
    }
}
