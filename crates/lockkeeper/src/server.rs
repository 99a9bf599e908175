//! What URLs of servers have in common: `//[user[:password]@]host[:port][,host[:port]…][/path]`, and the options of TLS.
//!
//! Surprise: parts are decoded one by one, after they are taken apart, so that a password may hold any character.

use std::path::PathBuf;

use lockkeeper_core::access::{Secret, Tls};
use lockkeeper_core::{Error, Result};

use crate::location::{Location, decode};

/// What stands before the options.
pub(crate) struct Server {
    pub(crate) user: Option<String>,
    pub(crate) password: Option<Secret>,
    /// In the order of the URL; there is at least one.
    pub(crate) hosts: Vec<Host>,
    /// What follows the hosts, as it was written and without its first `/`.
    pub(crate) path: String,
}

pub(crate) struct Host {
    pub(crate) name: String,
    pub(crate) port: u16,
}

impl Server {
    /// Takes a URL apart; `port` is meant where none is named, `example` is the hint if it cannot be read.
    pub(crate) fn read(location: &Location, port: u16, example: &str) -> Result<Self> {
        let invalid = |why| Error::invalid("store", why).with_hint(example.to_owned());
        let rest = location.written.strip_prefix("//").ok_or_else(|| invalid("it names no host"))?;
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (credentials, hosts) = authority.rsplit_once('@').unwrap_or(("", authority));
        let hosts = hosts.split(',').map(|host| Host::read(host, port));
        let hosts = hosts.collect::<std::result::Result<_, _>>().map_err(invalid)?;
        let (user, password) = credentials.split_once(':').unwrap_or((credentials, ""));
        let user = Some(decode(user)?).filter(|user| !user.is_empty());
        let password = Some(decode(password)?).filter(|password| !password.is_empty()).map(Secret::new);
        Ok(Self { user, password, hosts, path: path.to_owned() })
    }
}

impl Host {
    fn read(text: &str, usual: u16) -> std::result::Result<Self, &'static str> {
        let (name, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (name, rest) = rest.split_once(']').ok_or("the `[` of its IPv6 address is not closed")?;
                (name, rest.strip_prefix(':').or(rest.is_empty().then_some("")).ok_or("its port cannot be read")?)
            }
            None => text.split_once(':').unwrap_or((text, "")),
        };
        if name.is_empty() {
            return Err("it names no host");
        }
        let port = match port {
            "" => usual,
            port => digits(port).ok_or("its port cannot be read")?,
        };
        Ok(Self { name: decode(name).map_err(|_| "its host cannot be read")?, port })
    }
}

/// The options that say whom to believe and who to be.
pub(crate) const TLS_OPTIONS: [&str; 4] = ["ca", "cert", "key", "server_name"];

/// Takes them.
pub(crate) fn tls(location: &mut Location) -> Tls {
    let mut path = |option: &str| location.take(option).map(PathBuf::from);
    let (ca, cert, key) = (path("ca"), path("cert"), path("key"));
    Tls { ca, cert, key, server_name: location.take("server_name") }
}

/// What all names begin with that stand under this prefix.
pub(crate) fn listed_under(prefix: &str) -> String {
    if prefix.is_empty() { String::new() } else { format!("{prefix}/") }
}

/// A number that is written in digits alone; `parse` would also take a `+`.
pub(crate) fn digits<T: std::str::FromStr>(text: &str) -> Option<T> {
    text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}
