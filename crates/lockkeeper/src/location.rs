//! Reads a store's URL: a scheme, a place, and options that must all be known.
//!
//! Surprise: what a URL may hold of passwords never reaches an error; only the scheme and option names do, and these only
//! if no `@` follows. In `redis://user:a?b@host` somebody meant a password with a `?` in it.

use std::collections::BTreeMap;

use lockkeeper_core::{Error, Result};

/// A URL in its parts. Options are taken one by one; what is left at the end was unknown.
pub(crate) struct Location {
    pub(crate) scheme: String,
    /// What stands between the scheme and the options, decoded.
    pub(crate) place: String,
    /// The same as it was written: where `%40` and `@` are not the same.
    pub(crate) written: String,
    options: BTreeMap<String, String>,
    /// May its options be part of a password?
    hushed: bool,
}

impl Location {
    pub(crate) fn parse(url: &str) -> Result<Self> {
        let (scheme, rest) = url.split_once(':').ok_or_else(|| {
            Error::invalid("store", "it has no scheme").with_hint("write it like `sqlite:/var/lib/app/locks.db`")
        })?;
        let scheme_is_fine = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
        if !scheme_is_fine {
            return Err(Error::invalid("store", "what stands before the `:` is not a scheme")
                .with_hint("write it like `sqlite:/var/lib/app/locks.db`"));
        }
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let hushed = query.contains('@');
        let mut options = BTreeMap::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let key = decode(key)?;
            if options.insert(key.clone(), decode(value)?).is_some() {
                return Err(Error::invalid("store", format!("{} is given twice", option(&key, hushed))));
            }
        }
        let (scheme, written) = (scheme.to_ascii_lowercase(), place.to_owned());
        Ok(Self { scheme, place: decode(place)?, written, options, hushed })
    }

    /// The value of an option, which is then known.
    pub(crate) fn take(&mut self, option: &str) -> Option<String> {
        self.options.remove(option)
    }

    /// Refuses options that nobody took.
    pub(crate) fn finish(self, known: &[&str]) -> Result<()> {
        match self.options.into_keys().next() {
            None => Ok(()),
            Some(unknown) => {
                let known = known.join("`, `");
                let unknown = option(&unknown, self.hushed);
                Err(Error::invalid("store", format!("{unknown} is none that `{}:` has", self.scheme))
                    .with_hint(format!("its options are `{known}`; in a password, write `?` as `%3F`")))
            }
        }
    }
}

/// How an option is named in an error.
fn option(name: &str, hushed: bool) -> String {
    if hushed { "an option".to_owned() } else { format!("the option `{}`", name.escape_debug()) }
}

/// Undoes percent-encoding.
pub(crate) fn decode(text: &str) -> Result<String> {
    let bad = || Error::invalid("store", "a `%` in it is not followed by two hexadecimal digits of UTF-8");
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        if *first != b'%' {
            bytes.push(*first);
            rest = tail;
            continue;
        }
        let digit = |at: usize| tail.get(at).and_then(|digit| char::from(*digit).to_digit(16));
        let (high, low) = (digit(0).ok_or_else(bad)?, digit(1).ok_or_else(bad)?);
        bytes.push((high * 16 + low) as u8);
        rest = &tail[2..];
    }
    String::from_utf8(bytes).map_err(|_| bad())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_url() {
        let mut location = Location::parse("SQLite:/a%20b/c.db?sync=normal&prefix=").unwrap();
        assert_eq!((location.scheme.as_str(), location.place.as_str()), ("sqlite", "/a b/c.db"));
        assert_eq!(location.take("sync").as_deref(), Some("normal"));
        assert_eq!(location.take("prefix").as_deref(), Some(""));
        assert!(location.finish(&[]).is_ok());
    }

    #[test]
    fn what_cannot_be_read_is_invalid() {
        for bad in ["", "locks.db", ":x", "1a:", "a b:", "sqlite:%zz", "sqlite:%f", "sqlite:%ff", "sqlite:x?a=1&a=2"] {
            assert!(Location::parse(bad).is_err(), "{bad}");
        }
        let unknown = Location::parse("sqlite:x?sink=1").unwrap().finish(&["sync"]).unwrap_err();
        assert!(unknown.to_string().contains("sink") && unknown.hint().unwrap().contains("sync"));
    }

    #[test]
    fn a_password_with_a_question_mark_is_not_shown_as_an_option() {
        let unknown = Location::parse("redis://u:12?hushhush@h").unwrap().finish(&["cells"]).unwrap_err();
        let twice = Location::parse("redis://u:12?hushhush=1&hushhush=2@h").err().unwrap();
        for error in [unknown, twice] {
            assert!(!format!("{error:?}").contains("hush"), "{error:?}");
        }
    }
}
