//! What runs leave behind and say to each other: the history of `verify`, its registers, the list of servers of the rig.
//!
//! A history is one input in parts: `== plan`, `== worker 0 0`, `== registers`, `== faults`, `== after`, each on a line of
//! its own and followed by the lines of that file.

use lockkeeper_rig::Entry;
use lockkeeper_verify::check::judge;
use lockkeeper_verify::history::{History, Life, Lived, read};
use lockkeeper_verify::registers::{Answer, Request};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The parts of an input, by their titles.
fn parts(input: &[u8]) -> Vec<(String, &[u8])> {
    let mut parts: Vec<(String, &[u8])> = Vec::new();
    let (mut title, mut begin, mut at) = (String::new(), 0, 0);
    for line in input.split_inclusive(|byte| *byte == b'\n') {
        if let Some(next) = line.strip_prefix(b"== ") {
            parts.push((title, &input[begin..at]));
            title = String::from_utf8_lossy(next).trim_end().to_owned();
            begin = at + line.len();
        }
        at += line.len();
    }
    parts.push((title, &input[begin..]));
    parts
}

/// What a line is read as, it is written as, and read as again.
fn again<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(value: &T) {
    let line = serde_json::to_string(value).expect("it can be written");
    assert!(!line.contains('\n'), "{line}");
    let read: T = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line}: {error}"));
    assert_eq!(&read, value, "{line}");
}

/// The life in a title such as `worker 3 1`.
fn life(title: &str) -> Option<Life> {
    let (worker, life) = title.strip_prefix("worker ")?.split_once(' ')?;
    Some(Life { worker: worker.parse().ok()?, life: life.parse().ok()? })
}

/// Every line is read or told by its number; what is read is written to the same.
pub(crate) fn history(input: &[u8]) {
    for (title, lines) in parts(input) {
        let count = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count();
        if life(&title).is_some() {
            match read::worker_events("file", lines) {
                Ok((events, cut_short)) => {
                    assert_eq!(events.len() + usize::from(cut_short), count);
                    assert!(!cut_short || !lines.ends_with(b"\n"), "a whole line was left out");
                    events.iter().for_each(again);
                }
                Err(trouble) => names_a_line(&trouble.to_string()),
            }
        } else if title == "registers" {
            match read::register_steps("file", lines) {
                Ok(steps) => steps.iter().for_each(again),
                Err(trouble) => names_a_line(&trouble.to_string()),
            }
        } else if title == "faults" {
            match read::faults("file", lines) {
                Ok(faults) => faults.iter().for_each(again),
                Err(trouble) => names_a_line(&trouble.to_string()),
            }
        }
    }
}

fn names_a_line(trouble: &str) {
    assert!(trouble.starts_with("line ") && trouble.contains("\n  hint: "), "{trouble}");
}

/// A whole history is judged, the same twice, or it is said why it cannot be.
pub(crate) fn verdict(input: &[u8]) {
    let Some(history) = whole(input) else { return };
    match judge(&history) {
        Ok(judgement) => {
            assert!(!judgement.checks.is_empty());
            assert_eq!(format!("{judgement:?}"), format!("{:?}", judge(&history).expect("judged before")));
        }
        Err(trouble) => assert!(trouble.to_string().len() > 10, "{trouble}"),
    }
}

fn whole(input: &[u8]) -> Option<History> {
    let parts = parts(input);
    let part = |wanted: &str| parts.iter().find(|(title, _)| title == wanted).map_or(&b""[..], |(_, lines)| lines);
    let mut lives: Vec<Lived> = Vec::new();
    for (title, lines) in &parts {
        let Some(life) = life(title) else { continue };
        let (events, cut_short) = read::worker_events("file", *lines).ok()?;
        if lives.iter().all(|lived| lived.life != life) {
            lives.push(Lived { life, events, cut_short });
        }
    }
    lives.sort_by_key(|lived| lived.life);
    Some(History {
        plan: serde_json::from_slice(part("plan")).ok()?,
        lives,
        registers: read::register_steps("file", part("registers")).ok()?,
        faults: read::faults("file", part("faults")).ok()?,
        after: serde_json::from_slice(part("after")).ok(),
    })
}

/// What is understood is understood again.
pub(crate) fn registers(input: &[u8]) {
    for line in input.split(|byte| *byte == b'\n') {
        if let Ok(request) = serde_json::from_slice::<Request>(line) {
            again(&request);
        }
        if let Ok(answer) = serde_json::from_slice::<Answer>(line) {
            again(&answer);
        }
    }
}

/// What is read is written to the same list.
pub(crate) fn servers(input: &[u8]) {
    let Some(entries) = Entry::list(&String::from_utf8_lossy(input)) else { return };
    let written = Entry::write_list(&entries);
    assert_eq!(Entry::list(&written), Some(entries), "{written}");
}
