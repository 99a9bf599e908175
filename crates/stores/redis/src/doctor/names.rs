//! Is anything else where our names would be? Counted only, over a bounded part of the keys.

use std::time::{Duration, Instant};

use lockkeeper_core::Result;
use lockkeeper_core::checkup::{Finding, Level, Report};
use redis::Value;

use super::visit::{Answer, Visit};
use crate::look::{escaped, step_of};

/// How many keys the server looks at in one step, how many steps are made, and how long they may take.
const STEP: usize = 1_000;
const STEPS: usize = 20;
const WITHIN: Duration = Duration::from_secs(2);

/// What stands under the prefix.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// Locks of ours that somebody has.
    pub(crate) ours: usize,
    /// Strings of others: locks of other clients, or anything else.
    pub(crate) strings: usize,
    /// Keys of other types.
    pub(crate) others: usize,
    /// Were all keys looked at?
    pub(crate) all: bool,
}

/// Walks the keys, not further than the bounds; `None` if we may not.
pub(crate) async fn look(visit: &Visit, under: &str) -> Result<Option<Found>> {
    let pattern = format!("{}*", escaped(under));
    let mut found = Found::default();
    let mut cursor = "0".to_owned();
    let begun = Instant::now();
    for _ in 0..STEPS {
        let mut scan = redis::cmd("SCAN");
        scan.arg(&cursor).arg("MATCH").arg(&pattern).arg("COUNT").arg(STEP);
        let Some(step) = visit.ask(&scan).await?.value() else { return Ok(None) };
        let (next, mut keys) = step_of(step)?;
        // What stands beside our own holder keys.
        keys.retain(|key| !key.starts_with(b"{"));
        if !keys.is_empty() {
            let mut pipe = redis::pipe();
            for key in &keys {
                pipe.cmd("GETRANGE").arg(key).arg(0).arg(3);
            }
            for head in visit.ask_all(&pipe).await? {
                match head {
                    Answer::Value(Value::BulkString(head)) if head == b"lk1:" || head == b"lk1=" => found.ours += 1,
                    // Gone meanwhile.
                    Answer::Value(Value::BulkString(head)) if head.is_empty() => {}
                    Answer::Value(_) => found.strings += 1,
                    Answer::Refused(code, _) if code == "WRONGTYPE" => found.others += 1,
                    Answer::Refused(..) => return Ok(None),
                }
            }
        }
        if next == "0" {
            found.all = true;
            break;
        }
        if begun.elapsed() > WITHIN {
            break;
        }
        cursor = next;
    }
    Ok(Some(found))
}

/// Facts and findings about names.
pub(crate) fn tell(found: Option<Found>, under: &str, report: &mut Report) {
    let place = match under {
        "" => "names stand bare, beside all other keys".to_owned(),
        under => format!("under `{under}`"),
    };
    let Some(found) = found else {
        return report.fact("names", format!("{place}; what is there could not be seen"));
    };
    let part = if found.all { "" } else { ", in the part that was looked at" };
    report.fact("names", format!("{place}; {} held by us{part}", found.ours));
    if found.strings + found.others == 0 {
        return report.find(Finding::good("names", format!("nothing of others is {}{part}", place_of(under))));
    }
    let what = format!("{} strings and {} other keys that are not ours{part}", found.strings, found.others);
    let means =
        "a string there is taken for another client's lock and waited for; a key of another type cannot be locked";
    let finding = Finding::new("names", Level::Note, what, means);
    report.find(finding.with_change("use a prefix of your own: `?prefix=NAME`, unless they share locks with us"));
}

fn place_of(under: &str) -> String {
    if under.is_empty() { "among the keys".to_owned() } else { format!("under `{under}`") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(found: Option<Found>, under: &str) -> (Option<Level>, String) {
        let mut report = Report::new("redis", "");
        tell(found, under, &mut report);
        (report.findings.first().map(|finding| finding.level), report.facts[0].value.clone())
    }

    #[test]
    fn what_others_have_there_is_counted() {
        let clean = Found { ours: 2, all: true, ..Found::default() };
        assert_eq!(
            told(Some(clean), "lockkeeper/"),
            (Some(Level::Good), "under `lockkeeper/`; 2 held by us".to_owned())
        );
        let shared = Found { strings: 3, others: 1, ..clean };
        assert_eq!(told(Some(shared), "").0, Some(Level::Note));
        assert_eq!(told(None, "").0, None, "what cannot be seen is not judged");
        assert!(told(Some(Found::default()), "").1.contains("in the part that was looked at"));
    }
}
