//! What a Redis server tells of itself, and what `lockkeeper doctor` makes of it.
//!
//! An input is lines of `INFO`, a line `= ANSWERS`, and then answers as the protocol has them, one after the other: to
//! `CONFIG GET`, `HELLO`, `SLOWLOG GET`, `ACL WHOAMI`, and twice to `TIME`.

use lockkeeper_core::checkup::{Kept, Promise, Report};
use lockkeeper_redis::fuzzing;
use redis::Value;

/// Whatever it is told, the report is whole, nothing in it is for a terminal to obey, and what was not seen is not promised.
pub(crate) fn doctor(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let (info, _) = text.split_once("= ANSWERS\n").unwrap_or((&text, ""));
    let mut answers =
        input.windows(10).position(|window| window == b"= ANSWERS\n").map_or(&b""[..], |at| &input[at + 10..]);
    let mut parser = redis::Parser::new();
    let mut next = || parser.parse_value(&mut answers).unwrap_or_default();
    let told: [Value; 4] = std::array::from_fn(|_| next());
    let clock = [next(), next()].map(|time| fuzzing::time_us(&time).unwrap_or_default());
    let report = fuzzing::judged(info, [&told[0], &told[1], &told[2], &told[3]], clock);
    shown_well(&report);
    // A lock was not tried, so nothing is usable.
    assert_eq!(report.kept(Promise::Usable), Kept::No);
    if !info.contains("aof_enabled:1") {
        assert_ne!(report.kept(Promise::PowerLoss), Kept::Yes, "{info}");
    }
    if !info.contains("role:master") && !format!("{:?}", told[1]).contains("master") {
        assert_ne!(report.kept(Promise::WritablePrimary), Kept::Yes, "{info}");
    }
    assert!(!report.trust().is_empty());
}

/// Nothing in a report is for a terminal to obey.
pub(crate) fn shown_well(report: &Report) {
    for fact in &report.facts {
        assert!(!fact.value.contains(char::is_control), "{fact:?}");
    }
    for finding in &report.findings {
        let shown = [Some(&finding.found), Some(&finding.means), finding.change.as_ref()];
        assert!(!shown.iter().flatten().any(|text| text.contains(char::is_control)), "{finding:?}");
    }
    for promised in &report.promises {
        assert!(!promised.why.contains(char::is_control), "{promised:?}");
    }
}
