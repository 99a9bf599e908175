//! The URLs of stores.

use std::fmt::Write;
use std::path::Path;

use lockkeeper::fuzzing::{Asked, read};
use lockkeeper::{Access, ErrorKind, Secret};
use lockkeeper_core::access::Tls;
use lockkeeper_redis::{Address, Cells};

pub(crate) const WORDS: &[&str] = &[
    "redis://",
    "rediss://",
    "redis+unix://",
    "etcd://",
    "etcds://",
    "sqlite:",
    "memory:",
    "mysql://",
    "user:",
    "hushhush",
    ":hushhush@",
    "@",
    ":",
    "/",
    "//",
    "?",
    "&",
    "=",
    "%",
    "%40",
    "%ff",
    "%2",
    "#",
    ",",
    "[::1]",
    "[",
    "]",
    "localhost",
    ":6379",
    "prefix=",
    "sync=full",
    "sync=",
    "ca=",
    "cert=",
    "key=",
    "server_name=",
    "db=",
    "cells=watch",
    "lease=30s",
    "lease=",
    ",h2:1",
    "user=",
];

/// What a password is here: no text but the password itself may show it.
pub(crate) const PASSWORD: &str = "hushhush";

/// Nothing that is shown has the password in it; what is refused says why; what is accepted means the same when it is
/// written again in full.
pub(crate) fn url(input: &[u8]) {
    let url = String::from_utf8_lossy(input);
    for access in [Access::default(), Access { password: Some(Secret::new("another")) }] {
        match read(&url, &access) {
            Ok((asked, prefix)) => {
                let hidden = password_in(&asked).is_some_and(|password| password.contains(PASSWORD));
                // The same word elsewhere is not the password, and is shown.
                if hidden && url.matches(PASSWORD).count() == 1 && !url.contains('%') {
                    assert!(!format!("{asked:?} {prefix:?}").contains(PASSWORD), "{url:?} is shown as {asked:?}");
                }
                if access.password.is_none() {
                    means_the_same(&url, &asked);
                }
            }
            Err(error) => {
                assert!(matches!(error.kind(), ErrorKind::Invalid | ErrorKind::Unsupported), "{error:?}");
                assert!(error.to_string().len() > 10, "{error:?}");
                assert_hushed(&url, &format!("{error} {error:?}"));
            }
        }
    }
}

/// Where somebody may have meant a password, it is not shown: between the first `:` and the last `@` behind the `//`.
pub(crate) fn assert_hushed(url: &str, shown: &str) {
    if let Some((outside, meant)) = meant_as_password(url)
        && meant.contains(PASSWORD)
        // The same word elsewhere is not the password, and is shown.
        && !outside.contains(PASSWORD)
        && !outside.contains('%')
    {
        assert!(!shown.contains(PASSWORD), "{url:?} is shown as {shown}");
    }
}

/// What stands around the place of a password, and what stands there.
fn meant_as_password(url: &str) -> Option<(String, &str)> {
    let (scheme, rest) = url.split_once("://")?;
    let (credentials, place) = rest.rsplit_once('@')?;
    let (user, meant) = credentials.split_once(':')?;
    Some((format!("{scheme} {user} {place}").to_lowercase(), meant))
}

/// The password that a URL was found to have.
pub(crate) fn password_in(asked: &Asked) -> Option<&str> {
    let password = match asked {
        Asked::Redis(options) => options.password.as_ref(),
        Asked::Etcd(options) => options.password.as_ref(),
        Asked::Memory(_) | Asked::Sqlite(_) => None,
    };
    password.map(Secret::reveal)
}

fn means_the_same(url: &str, asked: &Asked) {
    let written = write(asked);
    let (again, _) =
        read(&written, &Access::default()).unwrap_or_else(|error| panic!("{url:?} as {written:?}: {error}"));
    assert_eq!(password_in(&again), password_in(asked), "{url:?} as {written:?}");
    assert_eq!(format!("{again:?}"), format!("{asked:?}"), "{url:?} as {written:?}");
}

/// The URL in full, with all that is not a letter or a digit in percent.
fn write(asked: &Asked) -> String {
    match asked {
        Asked::Memory(name) => format!("memory:{}", percent(name)),
        Asked::Sqlite(options) => {
            let path = options.path.to_string_lossy();
            let begin = if path.starts_with('/') { "//" } else { "" };
            let sync = format!("{:?}", options.sync).to_lowercase();
            format!("sqlite:{begin}{}?sync={sync}", percent(&path))
        }
        Asked::Redis(options) => redis(options),
        Asked::Etcd(options) => etcd(options),
    }
}

fn redis(options: &lockkeeper_redis::Options) -> String {
    let cells = if options.cells == Cells::Watch { "watch" } else { "script" };
    let mut query = Query::under(&options.listed_under);
    query.add("cells", Some(cells));
    match &options.address {
        Address::Unix(socket) => {
            query.add("user", options.user.as_deref());
            query.add("db", Some(&options.database.to_string()));
            format!("redis+unix://{}?{}", percent(&socket.to_string_lossy()), query.0)
        }
        Address::Tcp { host, port, tls } => {
            query.add_tls(tls.as_ref());
            let scheme = if tls.is_some() { "rediss" } else { "redis" };
            let credentials = credentials(options.user.as_deref(), options.password.as_ref());
            format!("{scheme}://{credentials}{}:{port}/{}?{}", percent(host), options.database, query.0)
        }
    }
}

fn etcd(options: &lockkeeper_etcd::Options) -> String {
    let mut query = Query::under(&options.listed_under);
    query.add("lease", Some(&format!("{}s", options.lease.as_secs())));
    query.add_tls(options.tls.as_ref());
    let scheme = if options.tls.is_some() { "etcds" } else { "etcd" };
    let credentials = credentials(options.user.as_deref(), options.password.as_ref());
    let hosts: Vec<_> =
        options.endpoints.iter().map(|endpoint| format!("{}:{}", percent(&endpoint.host), endpoint.port)).collect();
    format!("{scheme}://{credentials}{}?{}", hosts.join(","), query.0)
}

fn credentials(user: Option<&str>, password: Option<&Secret>) -> String {
    let password = password.map(|password| format!(":{}", percent(password.reveal())));
    format!("{}{}@", user.map(percent).unwrap_or_default(), password.unwrap_or_default())
}

/// The options of a URL.
struct Query(String);

impl Query {
    fn under(listed_under: &str) -> Self {
        Self(format!("prefix={}", percent(listed_under.strip_suffix('/').unwrap_or_default())))
    }

    fn add(&mut self, key: &str, value: Option<&str>) {
        if let Some(value) = value {
            let _ = write!(self.0, "&{key}={}", percent(value));
        }
    }

    fn add_tls(&mut self, tls: Option<&Tls>) {
        let Some(tls) = tls else { return };
        for (key, path) in [("ca", &tls.ca), ("cert", &tls.cert), ("key", &tls.key)] {
            self.add(key, path.as_deref().map(Path::to_string_lossy).as_deref());
        }
        self.add("server_name", tls.server_name.as_deref());
    }
}

fn percent(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            byte if byte.is_ascii_alphanumeric() => out.push(char::from(byte)),
            byte => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}
