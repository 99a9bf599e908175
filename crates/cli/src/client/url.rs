//! Passwords in URLs: where they may stand, and URLs as they can be shown.
//!
//! Surprise: this sees more passwords than the library takes. One with a `/` or a `?` in it that was not encoded makes a URL
//! that nobody can use, and must not be shown all the same.

/// Schemes of stores that have passwords.
const WITH_PASSWORD: [&str; 3] = ["redis", "rediss", "redis+unix"];

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
    // The colons of an IPv6 address are none of a password.
    let address = place.strip_prefix('[').and_then(|place| place.split_once(']'));
    let address = address.filter(|(within, behind)| !within.contains('@') && behind.starts_with([':', '/', '?']));
    let place = address.map_or(place, |(_, behind)| behind);
    let Some((user, meant)) = place.rsplit_once('@').and_then(|(before, _)| before.split_once(':')) else {
        return false;
    };
    if user.contains(['/', '?']) {
        return false;
    }
    // `//host:6379/0?ca=/a@b`: a port, a database, and an `@` in the value of an option.
    let (port, query) = meant.split_once('?').unwrap_or((meant, ""));
    let is_port = port.bytes().all(|byte| byte.is_ascii_digit() || byte == b'/');
    let is_word = |key: &str| !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    let in_value = query.rsplit('&').next().and_then(|pair| pair.split_once('=')).is_some_and(|(key, _)| is_word(key));
    !(is_port && in_value)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        ] {
            assert!(!has_password(good), "{good}");
        }
    }
}
