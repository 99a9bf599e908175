//! URLs of Redis servers: `redis://[user[:password]@]host[:port][/database]`, `rediss://` the same by TLS,
//! `redis+unix:///path/to.sock?db=`. `?cells=watch` changes cells without scripts.

use std::path::PathBuf;

use lockkeeper_core::{Error, Result};
use lockkeeper_redis::{Address, Cells, Options};

use crate::connect::Access;
use crate::location::Location;
use crate::server::{Host, Server, TLS_OPTIONS, digits, listed_under, tls};

const PORT: u16 = 6_379;

/// What a URL says, with the password and the prefix that go with it.
pub(crate) fn options(location: Location, access: &Access, under: &str) -> Result<Options> {
    let mut options = read(location)?;
    options.password = options.password.or_else(|| access.password.clone());
    options.listed_under = listed_under(under);
    Ok(options)
}

fn read(mut location: Location) -> Result<Options> {
    let mut options = match location.scheme.as_str() {
        "redis+unix" => unix(&mut location)?,
        _ => server(&mut location)?,
    };
    let mut known = vec!["prefix", "cells"];
    match location.scheme.as_str() {
        "redis+unix" => known.extend(["db", "user"]),
        "rediss" => known.extend(TLS_OPTIONS),
        _ => {}
    }
    options.cells = cells(&mut location)?;
    location.finish(&known)?;
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
    let server = Server::read(location, PORT, &example)?;
    let [host] = <[Host; 1]>::try_from(server.hosts)
        .map_err(|_| Error::invalid("store", "it names several hosts, and one is needed").with_hint(example))?;
    let tls = (location.scheme == "rediss").then(|| tls(location));
    let mut options = Options::at(Address::Tcp { host: host.name, port: host.port, tls });
    options.user = server.user;
    options.password = server.password;
    if !server.path.is_empty() {
        options.database = database_of(&server.path)?;
    }
    Ok(options)
}

fn database_of(text: &str) -> Result<u32> {
    digits(text).ok_or_else(|| {
        Error::invalid("store", "its database is not a number").with_hint("for example `redis://127.0.0.1/0`")
    })
}

#[cfg(test)]
mod tests {
    use lockkeeper_core::access::Secret;

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
