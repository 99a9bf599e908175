//! What `--json` prints: one object per command, named by its schema.
//!
//! Fields are only ever added. Times are whole milliseconds and say so in their names; tokens are strings, because
//! many readers of JSON round large numbers.

mod doctor;

use std::path::PathBuf;
use std::time::Duration;

use lockkeeper::Owner;
use lockkeeper::cell::Versioned;
use lockkeeper::deadlock::Circle;
use lockkeeper::kinds::{Decision, Leader};
use lockkeeper::store::{ClaimState, ClaimView, LockView};
use serde::Serialize;

pub use self::doctor::Doctor;

use crate::config::Origin;
use crate::exit::{self, Failure};
use crate::words;

/// What `ls` prints.
#[derive(Debug, Serialize)]
pub struct Ls {
    schema: &'static str,
    rows: Vec<Row>,
    circles: Vec<Stuck>,
}

/// Owners that wait for each other, each for a lock that the next one holds, and the last for the first one's.
#[derive(Debug, Serialize)]
struct Stuck {
    waits: Vec<Wait>,
}

#[derive(Debug, Serialize)]
struct Wait {
    name: String,
    claim: String,
    owner: Person,
}

/// One lock in `ls`.
#[derive(Debug, Serialize)]
struct Row {
    name: String,
    kind: &'static str,
    capacity: u32,
    state: &'static str,
    holders: Vec<Claim>,
    waiting: usize,
}

/// What `show` prints. A lock that nobody holds or waits for has no claims, no kind and no capacity.
#[derive(Debug, Serialize)]
pub struct Show {
    schema: &'static str,
    name: String,
    state: &'static str,
    kind: Option<&'static str>,
    capacity: Option<u32>,
    claims: Vec<Claim>,
    circles: Vec<Stuck>,
}

/// What `watch` prints, once per change: the same as `show`, and when.
#[derive(Debug, Serialize)]
pub struct Watch {
    schema: &'static str,
    at: String,
    name: String,
    state: &'static str,
    kind: Option<&'static str>,
    capacity: Option<u32>,
    claims: Vec<Claim>,
}

/// What `break` prints.
#[derive(Debug, Serialize)]
pub struct Break {
    schema: &'static str,
    name: String,
    now: bool,
    reason: Option<String>,
    broken: Vec<Broken>,
}

/// One hold that `break` took away.
#[derive(Debug, Serialize)]
pub struct Broken {
    claim: String,
    owner: Person,
    token: Option<String>,
    /// `broken`, `gone` (it ended before we came) or `unknown`.
    outcome: &'static str,
    stays_taken_ms: u64,
}

/// What `elect --watch` prints, once per leader; nobody leads where it is null.
#[derive(Debug, Serialize)]
pub struct Elect {
    schema: &'static str,
    name: String,
    leader: Option<Leading>,
}

#[derive(Debug, Serialize)]
struct Leading {
    owner: Person,
    token: Option<String>,
    note: String,
}

/// What `limit` prints.
#[derive(Debug, Serialize)]
pub struct Limit {
    schema: &'static str,
    name: String,
    admitted: bool,
    remaining: u64,
    /// When all of it is there again, if it was admitted.
    full_in_ms: Option<u64>,
    /// When asking again may succeed, if it was not.
    retry_after_ms: Option<u64>,
}

/// What `counter` prints.
#[derive(Debug, Serialize)]
pub struct Counter {
    schema: &'static str,
    name: String,
    /// Was it done? Only a `take` of too many is not.
    done: bool,
    value: i64,
}

/// What `cell` prints. Versions are strings for the same reason as tokens.
#[derive(Debug, Serialize)]
pub struct Cell {
    schema: &'static str,
    name: String,
    /// Was it found, set or removed?
    done: bool,
    version: Option<String>,
    value_base64: Option<String>,
}

/// What `config` prints.
#[derive(Debug, Serialize)]
pub struct Config {
    schema: &'static str,
    settings: Vec<Effective>,
    files: Vec<ConfigFile>,
}

#[derive(Debug, Serialize)]
struct Effective {
    setting: &'static str,
    value: Option<String>,
    /// `flag`, `environment`, `file` or `default`.
    from: &'static str,
    /// Which file.
    path: Option<String>,
}

#[derive(Debug, Serialize)]
struct ConfigFile {
    path: String,
    found: bool,
}

#[derive(Debug, Serialize)]
struct Claim {
    claim: String,
    state: &'static str,
    owner: Person,
    weight: u32,
    token: Option<String>,
    age_ms: Option<u64>,
    held_ms: Option<u64>,
    lease_left_ms: u64,
    note: String,
}

#[derive(Debug, Serialize)]
struct Person {
    host: String,
    pid: u32,
    label: String,
}

impl Ls {
    /// All rows.
    pub fn new(views: &[LockView], circles: &[Circle]) -> Self {
        let rows = views.iter().map(Row::new).collect();
        Self { schema: "lockkeeper.ls/1", rows, circles: circles.iter().map(Stuck::new).collect() }
    }
}

impl Stuck {
    fn new(circle: &Circle) -> Self {
        let waits = circle.claims.iter().map(|stuck| Wait {
            name: stuck.name.to_string(),
            claim: stuck.waiting.to_string(),
            owner: Person::new(&stuck.owner),
        });
        Self { waits: waits.collect() }
    }
}

impl Row {
    fn new(view: &LockView) -> Self {
        Self {
            name: view.name.to_string(),
            kind: view.kind.as_str(),
            capacity: view.capacity,
            state: words::state(Some(view)),
            holders: view.claims.iter().filter(|claim| claim.state != ClaimState::Waiting).map(Claim::new).collect(),
            waiting: words::waiting(view),
        }
    }
}

impl Show {
    /// One lock, or that it is free.
    pub fn new(name: &str, view: Option<&LockView>, circles: &[Circle]) -> Self {
        Self {
            schema: "lockkeeper.show/1",
            name: name.to_owned(),
            state: words::state(view),
            kind: view.map(|view| view.kind.as_str()),
            capacity: view.map(|view| view.capacity),
            claims: view.map(|view| view.claims.iter().map(Claim::new).collect()).unwrap_or_default(),
            circles: circles.iter().map(Stuck::new).collect(),
        }
    }
}

impl Watch {
    /// One lock, or that it is free.
    pub fn new(at: String, name: &str, view: Option<&LockView>) -> Self {
        let Show { name, state, kind, capacity, claims, .. } = Show::new(name, view, &[]);
        Self { schema: "lockkeeper.watch/1", at, name, state, kind, capacity, claims }
    }
}

impl Break {
    /// What was done.
    pub fn new(name: &str, now: bool, reason: Option<&str>, broken: Vec<Broken>) -> Self {
        Self { schema: "lockkeeper.break/1", name: name.to_owned(), now, reason: reason.map(str::to_owned), broken }
    }
}

impl Broken {
    /// One hold, how breaking it went, and for how long the name stays taken.
    pub fn new(claim: &ClaimView, outcome: &'static str, stays_taken: Duration) -> Self {
        Self {
            claim: claim.id.to_string(),
            owner: Person::new(&claim.owner),
            token: claim.token.map(|token| token.to_string()),
            outcome,
            stays_taken_ms: millis(stays_taken),
        }
    }
}

impl Elect {
    /// Who leads now.
    pub fn new(name: &str, leader: Option<&Leader>) -> Self {
        let leader = leader.map(|leader| Leading {
            owner: Person::new(&leader.owner),
            token: leader.token.map(|token| token.to_string()),
            note: String::from_utf8_lossy(&leader.note).into_owned(),
        });
        Self { schema: "lockkeeper.elect/1", name: name.to_owned(), leader }
    }
}

impl Limit {
    /// What the limiter has decided.
    pub fn new(name: &str, decision: &Decision) -> Self {
        let (remaining, full_in, retry_after) = match *decision {
            Decision::Admitted { remaining, full_in } => (remaining, Some(full_in), None),
            Decision::Limited { remaining, retry_after } => (remaining, None, retry_after),
        };
        Self {
            schema: "lockkeeper.limit/1",
            name: name.to_owned(),
            admitted: decision.is_admitted(),
            remaining,
            full_in_ms: full_in.map(millis),
            retry_after_ms: retry_after.map(millis),
        }
    }
}

impl Counter {
    /// What the number is.
    pub fn new(name: &str, done: bool, value: i64) -> Self {
        Self { schema: "lockkeeper.counter/1", name: name.to_owned(), done, value }
    }
}

impl Cell {
    /// What is there.
    pub fn found(name: &str, done: bool, current: Option<&Versioned>) -> Self {
        Self {
            schema: "lockkeeper.cell/1",
            name: name.to_owned(),
            done,
            version: current.map(|current| current.version.to_string()),
            value_base64: current.map(|current| base64(&current.value)),
        }
    }

    /// That it was set.
    pub fn set(name: &str, version: u64) -> Self {
        Self { version: Some(version.to_string()), ..Self::found(name, true, None) }
    }
}

impl Config {
    /// The settings in effect, and the files that were looked for.
    pub fn new(rows: &[(&'static str, Option<String>, &Origin)], files: &[(PathBuf, bool)]) -> Self {
        let effective = |(setting, value, origin): &(&'static str, Option<String>, &Origin)| {
            let (from, path) = match origin {
                Origin::Flag => ("flag", None),
                Origin::Variable(_) => ("environment", None),
                Origin::File(path) => ("file", Some(path.display().to_string())),
                Origin::Default => ("default", None),
            };
            Effective { setting, value: value.clone(), from, path }
        };
        let file = |(path, found): &(PathBuf, bool)| ConfigFile { path: path.display().to_string(), found: *found };
        Self {
            schema: "lockkeeper.config/1",
            settings: rows.iter().map(effective).collect(),
            files: files.iter().map(file).collect(),
        }
    }
}

impl Claim {
    fn new(claim: &ClaimView) -> Self {
        Self {
            claim: claim.id.to_string(),
            state: claim.state.as_str(),
            owner: Person::new(&claim.owner),
            weight: claim.weight,
            token: claim.token.map(|token| token.to_string()),
            age_ms: claim.age.map(millis),
            held_ms: claim.held_for.map(millis),
            lease_left_ms: millis(claim.lease_left),
            note: String::from_utf8_lossy(&claim.note).into_owned(),
        }
    }
}

impl Person {
    fn new(owner: &Owner) -> Self {
        Self { host: owner.host().to_owned(), pid: owner.pid(), label: owner.label().to_owned() }
    }
}

/// The object as one line.
pub fn line(value: &impl Serialize) -> Result<String, Failure> {
    match serde_json::to_string(value) {
        Ok(text) => Ok(format!("{text}\n")),
        Err(error) => Err(Failure::new(exit::BUG, format!("the answer could not be written as JSON: {error}"))),
    }
}

/// Standard base64 with padding: values are bytes, and JSON has none.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let number = three.iter().fold(0u32, |number, byte| number << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        for place in 0..4 {
            let digit = DIGITS[(number >> (18 - 6 * place)) as usize % 64];
            text.push(if place <= three.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::base64;

    #[test]
    fn bytes_are_written_as_everybody_writes_them() {
        for (bytes, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
        assert_eq!(base64(&[0xff, 0xfe, 0xfb]), "//77");
    }
}
