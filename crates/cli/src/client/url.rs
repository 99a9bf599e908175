//! Passwords in URLs: where they may stand, and URLs as they can be shown.
//!
//! Surprise: this sees more passwords than the library takes. One with a `/` or a `?` in it that was not encoded makes a URL
//! that nobody can use, and must not be shown all the same.

/// Schemes of stores that have passwords.
const WITH_PASSWORD: [&str; 5] = ["redis", "rediss", "redis+unix", "etcd", "etcds"];

/// Is it a store that may ask for a password?
pub fn has_passwords(url: &str) -> bool {
    let scheme = url.split(':').next().unwrap_or_default();
    WITH_PASSWORD.iter().any(|known| scheme.eq_ignore_ascii_case(known))
}

/// A URL that can be shown: one with a password in it, which is refused elsewhere, is shown up to its scheme.
pub fn without_password(url: &str) -> String {
    match url.split_once(':') {
        Some((scheme, rest)) if has_password(rest) => format!("{scheme}:…"),
        _ => url.to_owned(),
    }
}

/// Is there a password in what follows the scheme? `//user:password@host`, or an option that says so.
pub fn has_password(rest: &str) -> bool {
    let query = rest.split_once('?').map_or("", |(_, query)| query);
    let option = query.split('&').any(|pair| {
        let key = pair.split('=').next().unwrap_or_default();
        key.eq_ignore_ascii_case("password") || key.eq_ignore_ascii_case("pass")
    });
    option || has_credentials(rest)
}

fn has_credentials(rest: &str) -> bool {
    let Some(place) = rest.strip_prefix("//").filter(|place| !place.starts_with('/')) else { return false };
    let Some((before, _)) = place.rsplit_once('@') else { return false };
    let Some(end) = before.find(['/', '?']) else { return before.contains(':') };
    // The `@` stands behind what the library takes for hosts: `//host:6379/0?ca=/a@b`, or a password that is not encoded.
    let (authority, behind) = before.split_at(end);
    let (user, hosts) = authority.rsplit_once('@').unwrap_or(("", authority));
    if user.contains(':') {
        return true;
    }
    let ports: Vec<Option<&str>> = hosts.split(',').map(port).collect();
    if !hosts.contains(':') || ports.iter().all(|port| *port == Some("")) {
        return false;
    }
    let digits = |port: &str| port.strip_prefix(':').unwrap_or(port).bytes().all(|byte| byte.is_ascii_digit());
    let are_ports = ports.iter().all(|port| port.is_some_and(digits));
    let (path, query) = behind.split_once('?').unwrap_or((behind, ""));
    let is_database = path.bytes().all(|byte| byte.is_ascii_digit() || byte == b'/');
    let is_word = |key: &str| !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    let in_value = query.rsplit('&').next().and_then(|pair| pair.split_once('=')).is_some_and(|(key, _)| is_word(key));
    !(are_ports && is_database && in_value)
}

/// The port of a host with its colon, empty if there is no colon; nothing for what is not a host.
fn port(host: &str) -> Option<&str> {
    // The colons of an IPv6 address are none of a password.
    let (name, port) = match host.strip_prefix('[') {
        Some(host) => host.split_once(']').filter(|(_, port)| port.is_empty() || port.starts_with(':'))?,
        None => host.find(':').map_or((host, ""), |colon| host.split_at(colon)),
    };
    let is_host = name.chars().all(|c| c.is_alphanumeric() || ".-_%:".contains(c));
    is_host.then_some(port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_with_servers_have_passwords() {
        for (url, may) in [("etcd://h1,h2", true), ("ETCDS://h", true), ("redis://h", true), ("sqlite:/etcd", false)] {
            assert_eq!(has_passwords(url), may, "{url}");
        }
        assert_eq!(without_password("etcd://h1:1,u:hushhush@h2"), "etcd:…");
        assert_eq!(without_password("etcd://u@h1:1,h2"), "etcd://u@h1:1,h2");
    }

    #[test]
    fn passwords_in_urls_are_seen() {
        for bad in [
            "//u:p@h",
            "//:p@h/0",
            "//u:p@h1,h2/x",
            "//h/x?password=p",
            "//h?a=1&PASSWORD=x",
            "//u:a/b@h",
            "//u:a?b@h",
            "//u:1?b@h",
            "//u:1/b@h",
            "//u:a@b@h:1/0?ca=x",
            "//[u:p]@h",
            "//[u:p]:q@h",
            "//[u:p@[::1]:1",
            "//u:/p@h",
            "//u:?p@h",
            "//u::1?a=p@h",
            "//u:p@h1:1,h2:2",
            "//u:p@[::1]:1,[::2]",
            "//h1,u:p@h2",
            "//h1:1,u:p@h2:2",
            "//[::1]:1,u:p@h2",
            "//u:p,q@h1,h2?ca=/a@b.pem",
            "//u:1,p/q@h1,h2",
            "//u:1,p?q@h1,h2",
            "//u:1,p!?q=r@h1,h2",
        ] {
            assert!(has_password(bad), "{bad}");
        }
        for good in [
            "/path/a:b@c",
            "///path/a:b@c",
            "//h1:6379,h2:6380",
            "//user@h:1/x",
            "x?sync=normal",
            "//h/a:b@c",
            "//h:6379/0?ca=/a@b.pem",
            "//[::1]:6379?ca=/a@b.pem",
            "//user@h:1?ca=/a@b.pem",
            "//h!/a:b@c",
            "//h1,h2,h3",
            "//[::1]:2379,[fd00::2]:2379",
            "//user@h1:2379,[::1],h3:2379",
            "//h1:2379,h2:2379?ca=/a@b.pem",
            "//user@[::1],h2:2379?lease=30s&ca=/a@b.pem",
        ] {
            assert!(!has_password(good), "{good}");
        }
    }
}
