//! What the program `lockkeeper` reads: config files, URLs that it may show, times, the words of nested runs.
//!
//! Surprise: the program is no library, so its files that do nothing but read are compiled in here as they are.

#[path = "../../cli/src/config/file.rs"]
#[allow(dead_code, missing_docs)]
mod file;
#[path = "../../cli/src/run/record.rs"]
#[allow(dead_code, missing_docs)]
mod record;
#[path = "../../cli/src/run/nest/talk.rs"]
#[allow(dead_code, missing_docs)]
mod talk;
#[path = "../../cli/src/client/url.rs"]
#[allow(dead_code, missing_docs)]
mod url;
#[path = "../../cli/src/args/values.rs"]
#[allow(dead_code, missing_docs)]
mod values;

use std::time::Duration;

use lockkeeper::Access;
use lockkeeper::fuzzing::{Asked, read};

use self::record::Record;
use self::values::{Patience, Permits, Rate};
use crate::urls::{PASSWORD, assert_hushed, password_in};

pub(crate) const CONFIG_WORDS: &[&str] = &[
    "default = ",
    "[store.a]\n",
    "[store]\n",
    "[[store.a]]\n",
    "url = ",
    "password_file = ",
    "\"redis://u:hushhush@h\"",
    "'sqlite:/x'",
    "{ ",
    " }",
    "\"\"\"",
    "'''",
    "\\u001b",
    "1979-05-27",
    "true",
    "inf",
    "[",
    "]",
    "#",
    ".",
    ",",
];

/// What is accepted can be used by name; what is refused says what and where, on one line and without a password.
pub(crate) fn config(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    match file::parse(&text) {
        Ok(file) => {
            for (name, store) in &file.store {
                assert!(!name.contains(':') && store.url.get_ref().contains(':'), "{name:?} {store:?}");
                shown_url(store.url.get_ref().as_bytes());
            }
        }
        Err(wrong) => {
            let lines = text.split('\n').count();
            assert!(wrong.line.is_none_or(|line| (1..=lines).contains(&line)), "{wrong:?} of {lines} lines");
            assert!(wrong.what.len() > 5 && !wrong.what.contains(char::is_control), "{wrong:?}");
            // Elsewhere it is a name, and may be shown.
            let everywhere = text.matches(PASSWORD).count();
            if everywhere > 0 && text.matches(":hushhush@").count() == everywhere {
                assert!(!wrong.what.contains(PASSWORD), "{wrong:?}");
            }
        }
    }
}

/// What the library takes for a password is seen, and no URL is shown with one.
pub(crate) fn shown_url(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let shown = url::without_password(&text);
    if let Ok((asked @ (Asked::Redis(_) | Asked::Etcd(_)), _)) = read(&text, &Access::default()) {
        assert!(url::has_passwords(&text), "{text:?} may have a password");
        if password_in(&asked).is_some() {
            assert!(text.split_once(':').is_some_and(|(_, rest)| url::has_password(rest)), "{text:?} has a password");
            assert!(!shown.contains('@'), "{text:?} is shown as {shown:?}");
        }
    }
    let (scheme, rest) = text.split_once("://").unwrap_or_default();
    let user = rest.split(':').next().unwrap_or_default();
    // A path, a user with a `/` in it, or a password with an option in it: what was meant cannot be told.
    let unclear = scheme.contains(':') || rest.starts_with('/') || user.contains(['/', '?', '[']) || text.contains('=');
    if !unclear {
        assert_hushed(&text, &shown);
    }
    assert!(shown == text || shown.ends_with(":…"), "{text:?} is shown as {shown:?}");
}

/// What is accepted is written again to the same, and within its bounds; what is refused says how to write it.
pub(crate) fn times(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let century = Duration::from_secs(100 * 366 * 24 * 3_600);
    match values::duration(&text) {
        Ok(time) => {
            assert!(time < century, "{text:?} is {time:?}");
            let written = humantime::format_duration(time).to_string();
            assert_eq!(values::duration(&written), Ok(time), "{text:?} as {written:?}");
            assert_eq!(values::patience(&text), Ok(Patience::For(time)));
        }
        Err(why) => {
            assert!(why.len() > 10, "{why:?}");
            assert!(text == "forever" || values::patience(&text).is_err(), "{text:?}");
        }
    }
    match values::permits(&text) {
        Ok(Permits { take, of }) => {
            assert!((1..=of).contains(&take), "{text:?}");
            assert_eq!(values::permits(&format!("{take}/{of}")), Ok(Permits { take, of }));
            assert!(!text.contains(['+', ' ']), "{text:?}");
        }
        Err(why) => assert!(why.len() > 10, "{why:?}"),
    }
    match values::rate(&text) {
        Ok(Rate { limit, per }) => {
            assert!(limit > 0 && !per.is_zero() && per < century && !text.starts_with('+'), "{text:?}");
            let written = format!("{limit}/{}", humantime::format_duration(per));
            assert_eq!(values::rate(&written), Ok(Rate { limit, per }));
        }
        Err(why) => assert!(why.len() > 10, "{why:?}"),
    }
}

/// Whoever joins knows a token or none for every name; what is understood is understood again; lines end.
pub(crate) fn nested(input: &[u8]) {
    let mut heard = input.to_vec();
    let names = ["a".to_owned(), "orders/42".to_owned()];
    let lines = input.iter().filter(|byte| **byte == b'\n').count();
    let mut words = 0;
    while let Some(word) = talk::next_word(&mut heard) {
        words += 1;
        let Some(word) = word else { continue };
        let mut line = serde_json::to_vec(&word).expect("a word can be written");
        line.push(b'\n');
        assert_eq!(talk::next_word(&mut line), Some(Some(word.clone())));
        assert!(line.is_empty());
        if let Some((named, _)) = talk::terms(word, &names) {
            assert!(named.iter().map(|(name, _)| name.as_str()).eq(["a", "orders/42"]), "{named:?}");
        }
    }
    assert_eq!(words, lines);
    assert!(!heard.contains(&b'\n'));
    if let Some(Some(ask)) = talk::question(input) {
        let mut line = serde_json::to_vec(&ask).expect("a question can be written");
        line.push(b'\n');
        assert_eq!(talk::question(&line), Some(Some(ask)));
    }
    let text = String::from_utf8_lossy(input);
    if let Some(id) = talk::owner_id(&text) {
        assert_eq!(format!("{id:032x}"), text.to_ascii_lowercase());
    }
}

/// No record names everybody; what is understood is written as it was.
pub(crate) fn guard(input: &[u8]) {
    for bytes in input.chunks(Record::BYTES) {
        match Record::from_bytes(bytes) {
            Some(Record::Watch(watch)) => {
                assert!(watch.group.as_raw_pid() > 1, "{watch:?}");
                assert_eq!(&Record::Watch(watch).to_bytes()[..], bytes);
            }
            Some(record) => assert_eq!(Record::from_bytes(&record.to_bytes()), Some(record)),
            None => {}
        }
    }
}
