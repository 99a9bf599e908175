//! One config file: what it may hold, and what is wrong with one that holds something else.
//!
//! Surprise: no value of it reaches an error. Somebody may have put a URL with a password where it does not belong, and
//! the parser's own words repeat what they found.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use toml::Spanned;

/// One config file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// The store to use when none is asked for: a name from below, or a URL.
    pub default: Option<String>,
    #[serde(default)]
    pub store: BTreeMap<String, Store>,
}

/// `[store.NAME]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Store {
    pub url: Spanned<String>,
    pub password_file: Option<PathBuf>,
}

/// What is wrong with a file, and on which line.
#[derive(Debug, PartialEq, Eq)]
pub struct Wrong {
    pub line: Option<usize>,
    pub what: String,
}

/// Reads a file.
pub fn parse(text: &str) -> Result<File, Wrong> {
    let wrong = |at: Option<usize>, what: String| {
        let line = at.map(|at| 1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count());
        Wrong { line, what }
    };
    let file: File =
        toml::from_str(text).map_err(|error| wrong(error.span().map(|span| span.start), hushed(error.message())))?;
    for (name, store) in &file.store {
        let at = Some(store.url.span().start);
        if let Some((begin, _)) = name.split_once(':') {
            return Err(wrong(at, format!("`{}:…` has a colon, so `--store` cannot name it", begin.escape_debug())));
        }
        if !store.url.get_ref().contains(':') {
            let name = name.escape_debug();
            return Err(wrong(at, format!("the url of `{name}` is not one; it begins like `sqlite:`")));
        }
    }
    Ok(file)
}

/// The parser's words on one line, without the values in them, and without names that could be a URL.
fn hushed(message: &str) -> String {
    let mut message = message.trim_end().replace('\n', ", ").replace(char::is_control, " ");
    if let (Some(first), Some(last)) = (message.find('"'), message.rfind('"'))
        && first < last
    {
        message.replace_range(first + 1..last, "…");
    }
    if message.contains('@') {
        return "there is something that does not belong there".to_owned();
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_refused() {
        let bad = ["defualt = 'x'", "[store.a]\nurl = 'a:b'\nport = 1", "[store.a]", "[store.a]\nurl = 'ab'", "[x"];
        for text in bad {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(parse("[store.'a:b']\nurl = 'c:d'").is_err());
        assert!(parse("").is_ok());
        assert_eq!(parse("\n[store.a]\nurl = ''").unwrap_err().line, Some(3));
    }

    #[test]
    fn a_password_in_the_wrong_place_is_not_shown() {
        for text in [
            "[store]\nprod = \"redis://u:hushhush@h\"",
            "[store]\nprod = 'redis://u:hush\"hush@h'",
            "store = \"redis://u:hushhush@h\"",
            "default = [\"redis://u:hushhush@h\"]",
            "\"redis://u:hushhush@h\" = 1",
            "[store.'redis://u:hushhush@h']\nurl = 'redis:'",
            "[store.a]\nurl = { \"redis://u:hushhush@h\" = 1 }",
        ] {
            let wrong = parse(text).expect_err(text);
            assert!(!wrong.what.contains("hush"), "{text}: {wrong:?}");
        }
    }
}
