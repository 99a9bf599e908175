//! URLs of etcd clusters: `etcd://[user[:password]@]host[:port][,host[:port]…]`, `etcds://` the same by TLS.
//! `?lease=` is the lease that the claims of a client share.

use std::time::Duration;

use lockkeeper_core::limits::LEASE_MAX;
use lockkeeper_core::{Error, Result};
use lockkeeper_etcd::{Endpoint, Options};

use crate::connect::Access;
use crate::location::Location;
use crate::server::{Server, TLS_OPTIONS, digits, listed_under, tls};

const PORT: u16 = 2_379;
/// Servers make longer leases of those that are shorter.
const LEASE_MIN: Duration = Duration::from_secs(2);

/// What a URL says, with the password and the prefix that go with it.
pub(crate) fn options(location: Location, access: &Access, under: &str) -> Result<Options> {
    let mut options = read(location)?;
    options.password = options.password.or_else(|| access.password.clone());
    if options.password.is_some() && options.user.is_none() {
        return Err(Error::invalid("password", "on etcd it goes with a user, and there is none")
            .with_hint("name the user in the URL: `etcd://user@host`"));
    }
    options.listed_under = listed_under(under);
    Ok(options)
}

fn read(mut location: Location) -> Result<Options> {
    let example = format!("for example `{}://127.0.0.1:{PORT}`, or several hosts with `,` between", location.scheme);
    let server = Server::read(&location, PORT, &example)?;
    if !server.path.is_empty() {
        return Err(Error::invalid("store", "its hosts are followed by a path, and etcd has none")
            .with_hint("what names begin with is the option `prefix`; in a password, write `/` as `%2F`"));
    }
    let endpoints = server.hosts.into_iter().map(|host| Endpoint { host: host.name, port: host.port }).collect();
    let mut options = Options { user: server.user, password: server.password, ..Options::at(endpoints) };
    if let Some(text) = location.take("lease") {
        options.lease = lease(&text)?;
    }
    let mut known = vec!["prefix", "lease"];
    if location.scheme == "etcds" {
        options.tls = Some(tls(&mut location));
        known.extend(TLS_OPTIONS);
    }
    location.finish(&known)?;
    Ok(options)
}

/// Leases are counted in whole seconds there.
fn lease(text: &str) -> Result<Duration> {
    let units = [("s", 1), ("m", 60), ("h", 3_600)];
    let seconds = units.into_iter().find_map(|(unit, seconds)| {
        let number: u64 = digits(text.strip_suffix(unit)?)?;
        number.checked_mul(seconds)
    });
    let lease = seconds.map(Duration::from_secs).filter(|lease| (LEASE_MIN..=LEASE_MAX).contains(lease));
    lease.ok_or_else(|| {
        let hours = LEASE_MAX.as_secs() / 3_600;
        Error::invalid("store", format!("its option `lease` is not a time from {}s to {hours}h", LEASE_MIN.as_secs()))
            .with_hint("write it in whole seconds, minutes or hours: `30s`, `5m`, `1h`")
    })
}

#[cfg(test)]
mod tests {
    use lockkeeper_core::ErrorKind;
    use lockkeeper_core::access::Secret;

    use super::*;

    fn options_of(url: &str) -> Result<Options> {
        as_asked(url, &Access::default())
    }

    fn as_asked(url: &str, access: &Access) -> Result<Options> {
        options(Location::parse(url)?, access, "app")
    }

    fn hosts(url: &str) -> Vec<String> {
        options_of(url).unwrap().endpoints.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn parts_of_a_url() {
        let all = options_of("etcd://ann:p%40s%3As%2F%2C@host:7000?lease=5m").unwrap();
        assert_eq!(all.endpoints, [Endpoint { host: "host".to_owned(), port: 7_000 }]);
        assert_eq!((all.user.as_deref(), all.password.as_ref().map(Secret::reveal)), (Some("ann"), Some("p@s:s/,")));
        assert_eq!((all.lease, all.listed_under.as_str()), (Duration::from_secs(300), "app/"));
        assert!(all.tls.is_none());
        let short = options_of("etcd://h/").unwrap();
        assert!(short.user.is_none() && short.password.is_none());
        assert_eq!(short.lease, Options::at(Vec::new()).lease);
        let safe = options_of("etcds://h1,h2?ca=/ca.pem&cert=/c.pem&key=/k.pem&server_name=etcd.local").unwrap();
        let tls = safe.tls.expect("TLS");
        assert_eq!(tls.server_name.as_deref(), Some("etcd.local"));
        assert!(tls.ca.is_some() && tls.cert.is_some() && tls.key.is_some());
        assert_eq!(options(Location::parse("etcd://h").unwrap(), &Access::default(), "").unwrap().listed_under, "");
    }

    #[test]
    fn hosts_of_a_cluster() {
        assert_eq!(hosts("etcd://h1,h2:1,h3"), ["h1:2379", "h2:1", "h3:2379"]);
        assert_eq!(hosts("etcd://[::1],[fd00::2]:7,10.0.0.1"), ["[::1]:2379", "[fd00::2]:7", "10.0.0.1:2379"]);
        assert_eq!(hosts("etcds://ann:a,b:c@h1,h2?lease=2s"), ["h1:2379", "h2:2379"]);
        assert_eq!(hosts("etcd://a%2Cb,c"), ["a,b:2379", "c:2379"], "a comma that is encoded parts nothing");
    }

    #[test]
    fn a_password_may_come_by_another_way_and_goes_with_a_user() {
        let access = Access { password: Some(Secret::new("another")) };
        let password = |url: &str| as_asked(url, &access).unwrap().password.unwrap().reveal().to_owned();
        assert_eq!(password("etcd://ann@h1,h2"), "another");
        assert_eq!(password("etcd://ann:first@h1,h2"), "first");
        for refused in [as_asked("etcd://h", &access), options_of("etcd://:hushhush@h")] {
            let error = refused.expect_err("nobody has that password");
            assert!(error.kind() == ErrorKind::Invalid && error.hint().unwrap().contains("user"), "{error:?}");
            assert!(!format!("{error:?}").contains("hushhush"));
        }
    }

    #[test]
    fn leases_are_whole_seconds_within_bounds() {
        for (text, seconds) in [("2s", 2), ("90s", 90), ("24h", 86_400), ("0030s", 30)] {
            let read = options_of(&format!("etcd://h?lease={text}")).unwrap().lease;
            assert_eq!(read, Duration::from_secs(seconds), "{text}");
        }
        for bad in ["", "30", "s", "1s", "0s", "25h", "+5s", "2500ms", "1.5m", "1m30s", "18446744073709551615h"] {
            let error = options_of(&format!("etcd://h?lease={bad}")).expect_err(bad);
            assert!(error.kind() == ErrorKind::Invalid && error.to_string().contains("2s to 24h"), "{error:?}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_invalid_and_shows_no_password() {
        for bad in [
            "etcd:",
            "etcd://",
            "etcd:h",
            "etcd://h:x",
            "etcd://h:+2379",
            "etcd://h:65536",
            "etcd://[::1",
            "etcd://[::1]7",
            "etcd://h1,",
            "etcd://,h1",
            "etcd://h1,,h2",
            "etcd://h1,:2379",
            "etcd://h%zz",
            "etcd://u:hushhush@",
            "etcd://u:hushhush@h1,h2:x",
            "etcd://u:hushhush@h1,h2/0",
            "etcd://u:hush/hushhush@h1,h2",
            "etcd://u:hush?hushhush@h1,h2",
            "etcd://u:hushhush@h1,h2?ca=x",
            "etcd://u:1?lease=hushhush@h1,h2",
            "etcds://u:hushhush@h?tls=no",
        ] {
            let error = options_of(bad).expect_err(bad);
            assert_eq!(error.kind(), ErrorKind::Invalid, "{bad}");
            assert!(!format!("{error:?} {error}").contains("hushhush"), "{bad}");
        }
    }
}
