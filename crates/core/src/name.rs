//! Names of locks and cells: checked once, then cheap to pass around.
//!
//! Surprise: names are compared as bytes and never normalised, so `é` typed in two ways is two names.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::limits::NAME_BYTES;

/// The name of a lock or a cell: 1 to 200 bytes of UTF-8, in segments parted by `/`.
///
/// ```
/// use lockkeeper_core::Name;
/// assert!(Name::new("orders/42").is_ok());
/// assert!(Name::new("orders//42").is_err());
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(Arc<str>);

impl Name {
    /// Checks and makes a name.
    pub fn new(text: &str) -> Result<Self> {
        if text.is_empty() {
            return Err(Error::invalid("name", "it is empty"));
        }
        if text.len() > NAME_BYTES {
            return Err(Error::invalid("name", format!("{} bytes are more than the {NAME_BYTES} allowed", text.len())));
        }
        check_segments(text)?;
        Ok(Self(text.into()))
    }

    /// The name as it stands in the store under `prefix`; an empty prefix changes nothing.
    ///
    /// The limit on length is the user's: what a prefix adds does not count against it.
    pub(crate) fn under(&self, prefix: &str) -> Self {
        if prefix.is_empty() {
            return self.clone();
        }
        Self(joined(prefix, &self.0))
    }

    /// A bound, not a name: it sorts right before every name under `prefix`.
    pub(crate) fn before_all_under(prefix: &str) -> Self {
        Self(format!("{prefix}/").into())
    }

    /// A name that this library, not a user, wrote: read back from a store.
    ///
    /// It is not checked for length, since a prefix may have made it longer.
    pub fn stored(text: &str) -> Result<Self> {
        check_segments(text)?;
        Ok(Self(text.into()))
    }

    /// The name without the prefix it stands under, if it stands there.
    pub(crate) fn without(&self, prefix: &str) -> Option<Self> {
        if prefix.is_empty() {
            return Some(self.clone());
        }
        let rest = self.0.strip_prefix(prefix)?.strip_prefix('/')?;
        Some(Self(rest.into()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// `prefix/name`, in one allocation: every call of a store under a prefix makes one.
fn joined(prefix: &str, name: &str) -> Arc<str> {
    let (mut text, slash, end) = ([0; 2 * NAME_BYTES + 1], prefix.len(), prefix.len() + 1 + name.len());
    if end > text.len() {
        return [prefix, "/", name].concat().into();
    }
    text[..slash].copy_from_slice(prefix.as_bytes());
    text[slash] = b'/';
    text[slash + 1..end].copy_from_slice(name.as_bytes());
    str::from_utf8(&text[..end]).map_or_else(|_| [prefix, "/", name].concat().into(), Arc::from)
}

/// Checks a prefix: empty, or shaped as a name.
pub(crate) fn check_prefix(prefix: &str) -> Result<()> {
    if prefix.is_empty() {
        return Ok(());
    }
    if prefix.len() > NAME_BYTES {
        return Err(Error::invalid("prefix", format!("it is longer than {NAME_BYTES} bytes")));
    }
    check_segments(prefix)
}

fn check_segments(text: &str) -> Result<()> {
    if let Some(bad) = text.chars().find(|c| !allowed(*c)) {
        return Err(Error::invalid("name", format!("the character {bad:?} is not allowed")));
    }
    for segment in text.split('/') {
        if segment.is_empty() {
            return Err(Error::invalid("name", "a segment between `/` is empty"));
        }
        if segment == "." || segment == ".." {
            return Err(Error::invalid("name", "`.` and `..` are not allowed as segments"));
        }
    }
    Ok(())
}

/// White space, braces (hash tags in Redis), control characters, private-use and special code points are not.
fn allowed(c: char) -> bool {
    // Nearly all characters of nearly all names, without a look into tables.
    if c.is_ascii_alphanumeric() {
        return true;
    }
    !(c.is_whitespace()
        || c.is_control()
        || matches!(c, '{' | '}' | '\u{7f}'..='\u{9f}' | '\u{e000}'..='\u{f8ff}' | '\u{fff0}'..='\u{ffff}'))
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl FromStr for Name {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        Self::new(text)
    }
}

impl AsRef<str> for Name {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_limits_of_names() {
        for good in ["a", "orders/42", "ä/ö", "a.b/..c", "lock-1_x:y", &"n".repeat(200)] {
            assert!(Name::new(good).is_ok(), "{good}");
        }
        let long = "n".repeat(201);
        for bad in [
            "",
            "/",
            "a/",
            "/a",
            "a//b",
            ".",
            "a/..",
            "./a",
            "a b",
            "a\tb",
            "a{b",
            "b}",
            "a\u{7f}",
            "a\u{85}",
            "a\u{e000}",
            "a\u{fff0}",
            "a\u{ffff}",
            "a\0",
            &long,
        ] {
            let error = Name::new(bad).expect_err(bad);
            assert_eq!(error.kind(), crate::ErrorKind::Invalid);
        }
    }

    #[test]
    fn the_longest_prefix_goes_on_too() {
        for name in [Name::new(&"n".repeat(NAME_BYTES)).unwrap(), Name::stored(&"s".repeat(NAME_BYTES + 1)).unwrap()] {
            let (prefix, text) = ("p".repeat(NAME_BYTES), name.as_str());
            assert_eq!(name.under(&prefix).as_str(), format!("{prefix}/{text}"));
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_name_or_invalid(text in ".{0,300}") {
            if let Ok(name) = Name::new(&text) {
                prop_assert_eq!(name.as_str(), &text);
                prop_assert!(text.len() <= NAME_BYTES);
            }
        }

        #[test]
        fn a_prefix_goes_on_and_comes_off(text in "[a-z]{1,9}(/[a-z]{1,9}){0,3}", prefix in "([a-z]{1,9})?") {
            let name = Name::new(&text).unwrap();
            prop_assert_eq!(name.under(&prefix).without(&prefix), Some(name));
        }
    }
}
