//! The URLs of stores.

use std::fmt::Write;

use lockkeeper::fuzzing::{Asked, read};
use lockkeeper::{Access, ErrorKind, Secret};
use lockkeeper_redis::{Address, Cells};

pub(crate) const WORDS: &[&str] = &[
    "redis://",
    "rediss://",
    "redis+unix://",
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

fn password_in(asked: &Asked) -> Option<&str> {
    match asked {
        Asked::Redis(options) => options.password.as_ref().map(Secret::reveal),
        _ => None,
    }
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
    }
}

fn redis(options: &lockkeeper_redis::Options) -> String {
    let under = options.listed_under.strip_suffix('/').unwrap_or_default();
    let cells = if options.cells == Cells::Watch { "watch" } else { "script" };
    let mut query = format!("prefix={}&cells={cells}", percent(under));
    let mut add = |key: &str, value: Option<&str>| {
        if let Some(value) = value {
            query.push_str(&format!("&{key}={}", percent(value)));
        }
    };
    let path = |path: &Option<std::path::PathBuf>| path.as_ref().map(|path| path.to_string_lossy().into_owned());
    match &options.address {
        Address::Unix(socket) => {
            add("user", options.user.as_deref());
            add("db", Some(&options.database.to_string()));
            format!("redis+unix://{}?{query}", percent(&socket.to_string_lossy()))
        }
        Address::Tcp { host, port, tls } => {
            if let Some(tls) = tls {
                add("ca", path(&tls.ca).as_deref());
                add("cert", path(&tls.cert).as_deref());
                add("key", path(&tls.key).as_deref());
                add("server_name", tls.server_name.as_deref());
            }
            let scheme = if tls.is_some() { "rediss" } else { "redis" };
            let user = options.user.as_deref().map(percent).unwrap_or_default();
            let password = options.password.as_ref().map(|password| format!(":{}", percent(password.reveal())));
            let password = password.unwrap_or_default();
            format!("{scheme}://{user}{password}@{}:{port}/{}?{query}", percent(host), options.database)
        }
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
