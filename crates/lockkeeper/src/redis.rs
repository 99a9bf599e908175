//! URLs of Redis servers: `redis://[user[:password]@]host[:port][/database]`, `rediss://` the same by TLS,
//! `redis+unix:///path/to.sock?db=`. `?cells=watch` changes cells without scripts.
//!
//! Surprise: parts are decoded one by one, after they are taken apart, so that a password may hold any character.

use std::path::PathBuf;

use lockkeeper_core::access::{Secret, Tls};
use lockkeeper_core::{Error, Result};
use lockkeeper_redis::{Address, Cells, Options};

use crate::connect::Access;
use crate::location::{Location, decode};

const PORT: u16 = 6_379;

/// What a URL says, with the password and the prefix that go with it.
pub(crate) fn options(location: Location, access: &Access, under: &str) -> Result<Options> {
    let mut options = read(location)?;
    options.password = options.password.or_else(|| access.password.clone());
    if !under.is_empty() {
        options.listed_under = format!("{under}/");
    }
    Ok(options)
}

fn read(mut location: Location) -> Result<Options> {
    let mut options = match location.scheme.as_str() {
        "redis+unix" => unix(&mut location)?,
        _ => server(&mut location)?,
    };
    let known: &[&str] = match location.scheme.as_str() {
        "redis+unix" => &["db", "user", "prefix", "cells"],
        "rediss" => &["ca", "cert", "key", "server_name", "prefix", "cells"],
        _ => &["prefix", "cells"],
    };
    options.cells = cells(&mut location)?;
    location.finish(known)?;
    Ok(options)
}

fn cells(location: &mut Location) -> Result<Cells> {
    match location.take("cells").as_deref() {
        None | Some("script") => Ok(Cells::Script),
        Some("watch") => Ok(Cells::Watch),
        Some(_) => Err(Error::invalid("store", "its option `cells` is neither `script` nor `watch`")
            .with_hint("`watch` is for servers that allow no scripts; leave it out otherwise")),
    }
}

fn unix(location: &mut Location) -> Result<Options> {
    let path = location.place.strip_prefix("//").filter(|path| path.starts_with('/') && path.len() > 1);
    let Some(path) = path else {
        return Err(Error::invalid("store", "`redis+unix:` needs the absolute path of a socket")
            .with_hint("for example `redis+unix:///run/redis/redis.sock?db=0`"));
    };
    let mut options = Options::at(Address::Unix(PathBuf::from(path)));
    if let Some(database) = location.take("db") {
        options.database = database_of(&database)?;
    }
    options.user = location.take("user");
    Ok(options)
}

fn server(location: &mut Location) -> Result<Options> {
    let example = format!("for example `{}://127.0.0.1:{PORT}/0`", location.scheme);
    let written = location.written.clone();
    let Some(rest) = written.strip_prefix("//") else {
        return Err(Error::invalid("store", "it names no host").with_hint(example));
    };
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (credentials, host) = match authority.rsplit_once('@') {
        Some((credentials, host)) => (Some(credentials), host),
        None => (None, authority),
    };
    let (host, port) = host_and_port(host).map_err(|why| Error::invalid("store", why).with_hint(example.clone()))?;
    let tls = (location.scheme == "rediss").then(|| tls(location));
    let mut options = Options::at(Address::Tcp { host, port, tls });
    if let Some(credentials) = credentials {
        let (user, password) = match credentials.split_once(':') {
            Some((user, password)) => (user, Some(password)),
            None => (credentials, None),
        };
        options.user = Some(decode(user)?).filter(|user| !user.is_empty());
        options.password = password.map(decode).transpose()?.filter(|text| !text.is_empty()).map(Secret::new);
    }
    if !path.is_empty() {
        options.database = database_of(path)?;
    }
    Ok(options)
}

fn tls(location: &mut Location) -> Tls {
    let mut path = |option: &str| location.take(option).map(PathBuf::from);
    let (ca, cert, key) = (path("ca"), path("cert"), path("key"));
    Tls { ca, cert, key, server_name: location.take("server_name") }
}

fn host_and_port(text: &str) -> std::result::Result<(String, u16), &'static str> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']').ok_or("the `[` of its IPv6 address is not closed")?;
            (host, rest.strip_prefix(':').or(rest.is_empty().then_some("")).ok_or("its port cannot be read")?)
        }
        None => text.split_once(':').unwrap_or((text, "")),
    };
    if host.is_empty() {
        return Err("it names no host");
    }
    if host.contains(',') {
        return Err("it names several hosts, and one is needed");
    }
    let port = match port {
        "" => PORT,
        port => digits(port).ok_or("its port cannot be read")?,
    };
    Ok((decode(host).map_err(|_| "its host cannot be read")?, port))
}

fn database_of(text: &str) -> Result<u32> {
    digits(text).ok_or_else(|| {
        Error::invalid("store", "its database is not a number").with_hint("for example `redis://127.0.0.1/0`")
    })
}

/// A number that is written in digits alone; `parse` would also take a `+`.
fn digits<T: std::str::FromStr>(text: &str) -> Option<T> {
    text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options_of(url: &str) -> Result<Options> {
        read(Location::parse(url)?)
    }

    #[test]
    fn parts_of_a_url() {
        let all = options_of("redis://ann:p%40s%3As%2F@host:7000/3").unwrap();
        assert!(matches!(&all.address, Address::Tcp { host, port: 7_000, tls: None } if host == "host"));
        assert_eq!((all.user.as_deref(), all.password.as_ref().map(Secret::reveal)), (Some("ann"), Some("p@s:s/")));
        assert_eq!(all.database, 3);
        assert_eq!(all.cells, Cells::Script);
        for url in ["redis://h?cells=watch", "rediss://h?cells=watch", "redis+unix:///s?cells=watch"] {
            assert_eq!(options_of(url).unwrap().cells, Cells::Watch, "{url}");
        }
        let short = options_of("redis://[::1]").unwrap();
        assert!(matches!(&short.address, Address::Tcp { host, port: PORT, tls: None } if host == "::1"));
        assert!(short.user.is_none() && short.password.is_none() && short.database == 0);
        let only_password = options_of("redis://:secret@h").unwrap();
        assert!(only_password.user.is_none() && only_password.password.is_some());
        let socket = options_of("redis+unix:///run/r.sock?db=2&user=ann").unwrap();
        assert!(matches!(&socket.address, Address::Unix(path) if path.to_str() == Some("/run/r.sock")));
        assert_eq!((socket.database, socket.user.as_deref()), (2, Some("ann")));
        let safe = options_of("rediss://h?ca=/ca.pem&cert=/c.pem&key=/k.pem&server_name=redis.local").unwrap();
        let Address::Tcp { tls: Some(tls), .. } = safe.address else { panic!("no TLS") };
        assert_eq!(tls.server_name.as_deref(), Some("redis.local"));
        assert!(tls.ca.is_some() && tls.cert.is_some() && tls.key.is_some());
    }

    #[test]
    fn what_cannot_be_read_is_invalid_and_shows_no_password() {
        for bad in [
            "redis:",
            "redis:///0",
            "redis://h:x",
            "redis://h:+6379",
            "redis://h/+1",
            "redis://h/x",
            "redis://[::1",
            "redis://u:hushhush@h1,h2",
            "redis://u:hushhush@/0",
            "redis://u:hushhush@h?ca=x",
            "redis://u:hushhush@h?cells=locks",
            "redis+unix:relative",
            "redis+unix:///s?db=x",
            "rediss://u:hushhush@h?tls=no",
        ] {
            let error = options_of(bad).expect_err(bad);
            assert!(!format!("{error:?} {error}").contains("hushhush"), "{bad}");
        }
    }
}
