//! The words for things: how plans and findings are spelled on the command line, in JSON and in sentences.
//!
//! Surprise: the spelling is that of the history's files, so there is one place where it is decided.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::judgement::{Outcome, Promise};
use crate::plan::{Nemesis, Work};

/// Everything that hurts, its word, and what it does.
pub const NEMESES: [(Nemesis, &str, &str); 13] = [
    (Nemesis::KillWorker, "kill-worker", "kills a worker; another takes its place"),
    (Nemesis::KillHolder, "kill-holder", "kills the worker that holds a lock at this moment"),
    (Nemesis::PauseWorker, "pause-worker", "stops a worker for longer than its lease"),
    (
        Nemesis::PauseHolder,
        "pause-holder",
        "stops the holder between its read and its write, for longer than its lease",
    ),
    (Nemesis::StepClient, "step-client", "steps the wall clock of a worker"),
    (Nemesis::KillStore, "kill-store", "kills the store's server, of a cluster the leader, and starts it again"),
    (
        Nemesis::PauseStore,
        "pause-store",
        "stops the store's server, of a cluster the leader, for longer than the lease",
    ),
    (Nemesis::StepStore, "step-store", "steps the wall clock of the store's server, forward and back"),
    (Nemesis::WipeStore, "wipe-store", "wipes the store's data"),
    (Nemesis::Cut, "cut", "cuts connections"),
    (Nemesis::Delay, "delay", "delays everything on its way"),
    (Nemesis::HalfOpen, "half-open", "keeps connections open, and lets nothing through"),
    (Nemesis::LoseReplies, "lose-replies", "lets requests through, and loses the replies"),
];

/// Everything that workers can do, its word, and what it is.
pub const WORKS: [(Work, &str, &str); 6] = [
    (Work::Mutex, "mutex", "mutexes and their registers, with cells and counters between"),
    (Work::ReadWrite, "read-write", "readers and writers"),
    (Work::Semaphore, "semaphore", "permits"),
    (Work::Multi, "multi", "several names at once"),
    (Work::Reentrant, "reentrant", "an owner that comes in again while it holds"),
    (Work::Nothing, "nothing", "no lock at all: the registers must lose, which shows that they can"),
];

/// How a thing is spelled: `kill-store`.
pub fn word(thing: &impl Serialize) -> String {
    match serde_json::to_value(thing) {
        Ok(serde_json::Value::String(word)) => word,
        other => format!("{other:?}"),
    }
}

/// The thing that is spelled so, if there is one.
pub fn from_word<T: DeserializeOwned>(word: &str) -> Option<T> {
    serde_json::from_value(serde_json::Value::String(word.to_owned())).ok()
}

/// Several, with commas between; `none` if there is none.
pub fn list(nemesis: &[Nemesis]) -> String {
    match nemesis {
        [] => "none".to_owned(),
        some => some.iter().map(word).collect::<Vec<_>>().join(","),
    }
}

/// What a promise means, in a sentence.
pub fn promise(promise: Promise) -> &'static str {
    match promise {
        Promise::Holds => "holders exclude each other",
        Promise::PassesOn => "the lock may pass on while its old holder acts; a fenced resource is safe",
        Promise::Breaks => "the lock may break, also for fenced resources",
    }
}

/// What came of a check; what must not be overlooked is in capitals, since there may be no colour.
pub fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Passed => "passed",
        Outcome::Failed => "FAILED",
        Outcome::Reported => "reported",
        Outcome::NotRun => "not run",
    }
}

/// A number that people can read: `12,345`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A share in percent, with as many digits as say something.
pub fn percent(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0 %".to_owned(),
        some if some < 0.095 => format!("{some:.3} %"),
        some if some < 9.95 => format!("{some:.2} %"),
        some => format!("{some:.0} %"),
    }
}

/// A time that a flag takes, exactly: `1500ms`, `2s`, `2m`.
pub fn time(ms: u64) -> String {
    match ms {
        0 => "0".to_owned(),
        ms if ms % 60_000 == 0 => format!("{}m", ms / 60_000),
        ms if ms % 1_000 == 0 => format!("{}s", ms / 1_000),
        ms => format!("{ms}ms"),
    }
}

/// A time as people say it: `812 ms`, `3.2 s`.
pub fn span_ms(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..100_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        _ => format!("{} s", count(ms / 1_000)),
    }
}

/// The same, of microseconds.
pub fn span_us(us: u64) -> String {
    match us {
        0..1_000 => format!("{us} µs"),
        1_000..100_000 => format!("{}.{} ms", us / 1_000, us % 1_000 / 100),
        _ => span_ms(us / 1_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_they_are_written() {
        for (nemesis, spelled, _) in NEMESES {
            assert_eq!((word(&nemesis).as_str(), from_word(spelled)), (spelled, Some(nemesis)));
        }
        assert_eq!(NEMESES.map(|(nemesis, ..)| nemesis), crate::nemesis::ALL);
        for (work, spelled, _) in WORKS {
            assert_eq!((word(&work).as_str(), from_word(spelled)), (spelled, Some(work)));
        }
        assert_eq!(word(&Nemesis::LoseReplies), "lose-replies");
        assert_eq!(from_word::<Nemesis>("lose"), None);
        assert_eq!((list(&[]), list(&[Nemesis::Cut, Nemesis::Delay])), ("none".into(), "cut,delay".into()));
    }

    #[test]
    fn figures_are_short_and_flags_exact() {
        assert_eq!([count(0), count(999), count(1_000), count(1_234_567)], ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([percent(0.0), percent(0.0003), percent(0.03), percent(1.0)], ["0 %", "0.030 %", "3.00 %", "100 %"]);
        assert_eq!([time(0), time(1_500), time(2_000), time(120_000)], ["0", "1500ms", "2s", "2m"]);
        assert_eq!([span_ms(999), span_ms(3_290), span_ms(120_000)], ["999 ms", "3.2 s", "120 s"]);
        assert_eq!([span_us(12), span_us(1_250), span_us(250_000)], ["12 µs", "1.2 ms", "250 ms"]);
    }
}
