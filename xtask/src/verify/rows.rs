//! The rows of the two matrices: what is run, for how long, and what must come of it.
//!
//! Surprise: the full matrix is not written down. It is every target against everything that the program says can be done
//! to it, so a new store or a new nemesis is in it without a word here.

use lockkeeper_rig::Trouble;
use serde_json::Value;

/// Acquisitions that a row of the full matrix must have had acknowledged.
pub const ENOUGH: u64 = 1_000;
/// The same in the smoke matrix, whose rows are short and may run on a slow machine.
pub const ENOUGH_FOR_SMOKE: u64 = 100;
/// The lease of rows, where the store gives one as short.
const LEASE_MS: u32 = 1_000;
/// The workers of rows that do not say otherwise.
const WORKERS: u32 = 4;
/// Without any lock this share of the updates must be lost at least, or the registers cannot see losses.
pub const CONTROL_LOSES: f64 = 0.05;

/// One run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The store.
    pub target: String,
    /// What hurts, or `none`.
    pub nemesis: String,
    /// What the workers do; `nothing` is the control.
    pub work: String,
    /// For how long.
    pub seconds: u32,
    /// The lease of its holds.
    pub lease_ms: u32,
    /// How far apart its faults begin, where that is not drawn by lot.
    pub every_s: Option<u32>,
    /// How many worker processes.
    pub workers: u32,
    /// Its seed.
    pub seed: u64,
    /// How many acquisitions must be acknowledged.
    pub enough: u64,
}

/// Something that cannot be done to a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Untested {
    /// The store.
    pub target: String,
    /// What would hurt.
    pub nemesis: String,
    /// Why it cannot be done.
    pub why: String,
}

impl Row {
    /// What it is called: a name for files.
    pub fn name(&self) -> String {
        let work = if self.work == "mutex" { String::new() } else { format!("-{}", self.work) };
        let every = self.every_s.map(|every| format!("-every-{every}s")).unwrap_or_default();
        format!("{}-{}{work}{every}", self.target, self.nemesis)
    }

    /// Is it the row without any lock, which must lose?
    pub fn is_control(&self) -> bool {
        self.work == "nothing"
    }

    /// The flags for the program.
    pub fn args(&self) -> Vec<String> {
        // Several of three would be most of them: hardly anything would happen at a time.
        let locks = if self.work == "multi" { 12 } else { 3 };
        let every = self.every_s.map(|every| format!(" --every {every}s")).unwrap_or_default();
        let text = format!(
            "verify {} --nemesis {} --work {} --for {}s --lease {}ms --locks {locks} --workers {}{every} --seed {} --json",
            self.target, self.nemesis, self.work, self.seconds, self.lease_ms, self.workers, self.seed
        );
        text.split(' ').map(str::to_string).collect()
    }
}

/// The smoke matrix: about two minutes.
pub fn smoke() -> Vec<Row> {
    let rows: &[(&str, &str, &str, u32)] = &[
        ("sqlite", "none", "nothing", 3),
        ("sqlite", "none", "mutex", 5),
        ("sqlite", "kill-holder", "mutex", 8),
        ("sqlite", "pause-holder", "mutex", 8),
        ("redis", "none", "mutex", 5),
        ("redis", "pause-holder", "mutex", 8),
        ("redis", "kill-store", "mutex", 8),
        ("redis", "lose-replies", "mutex", 8),
        ("redis", "cut", "mutex", 8),
        ("redis-durable", "kill-store", "mutex", 8),
        ("etcd", "cut", "mutex", 8),
        ("etcd-3", "kill-store", "mutex", 8),
    ];
    let row = |(at, (target, nemesis, work, seconds)): (usize, &(&str, &str, &str, u32))| Row {
        target: target.to_string(),
        nemesis: nemesis.to_string(),
        work: work.to_string(),
        seconds: *seconds,
        lease_ms: if target.starts_with("etcd") { 2_000 } else { LEASE_MS },
        every_s: None,
        workers: WORKERS,
        seed: 1_000 + at as u64,
        enough: ENOUGH_FOR_SMOKE,
    };
    rows.iter().enumerate().map(row).collect()
}

/// The same rows, shortened to see that they work.
pub fn quick(rows: &mut [Row]) {
    for row in rows {
        (row.seconds, row.enough) = (6, ENOUGH_FOR_SMOKE);
    }
}

/// The full matrix, from what `verify targets --json` says; and what cannot be tested.
pub fn all(targets: &Value) -> Result<(Vec<Row>, Vec<Untested>), Trouble> {
    let (mut rows, mut untested) = (Vec::new(), Vec::new());
    let (mut sorts, mut hurt_before) = (Vec::new(), Vec::new());
    for target in list(targets, "targets")? {
        // A cluster is no variant of the same server alone: everything is another matter there.
        let members = target["members"].as_u64().ok_or_else(|| strange("members"))?;
        let scheme = (text(target, "scheme")?, members);
        let is_variant = sorts.contains(&scheme);
        sorts.push(scheme);
        let name = text(target, "target")?;
        for refused in list(target, "cannot")? {
            let (nemesis, why) = (text(refused, "nemesis")?.to_string(), text(refused, "why")?.to_string());
            untested.push(Untested { target: name.to_string(), nemesis, why });
        }
        let known: Vec<&str> =
            hurt_before.iter().filter(|(of, _)| *of == scheme).map(|(_, nemesis)| *nemesis).collect();
        let mut hurts = vec!["none"];
        for nemesis in list(target, "nemesis")? {
            hurts.push(nemesis.as_str().ok_or_else(|| strange("a nemesis"))?);
        }
        hurt_before.extend(hurts.iter().map(|nemesis| (scheme, *nemesis)));
        let shortest = target["lease_min_ms"].as_u64().ok_or_else(|| strange("lease_min_ms"))?;
        let lease_ms = LEASE_MS.max(u32::try_from(shortest).unwrap_or(u32::MAX));
        for work in WORKS {
            // What hurts connections and servers is told by mutexes; other kinds have what hurts holders, and are the same
            // code on every variant of a store. Of a variant only that is asked which it may do in another way.
            let hurts = hurts.iter().filter(|nemesis| match *work {
                "mutex" => !is_variant || !known.contains(nemesis) || IN_ANOTHER_WAY.contains(nemesis),
                _ if is_variant => false,
                "nothing" => **nemesis == "none",
                _ => matches!(**nemesis, "none" | "kill-holder" | "pause-holder"),
            });
            for nemesis in hurts {
                rows.push(Row {
                    target: name.to_string(),
                    nemesis: nemesis.to_string(),
                    work: work.to_string(),
                    // Long enough for the calm between the faults to be measured.
                    // Where leases are longer, so are faults and what they leave.
                    seconds: if *work == "mutex" { 30 } else { (14 * lease_ms / LEASE_MS).min(20) },
                    lease_ms,
                    every_s: None,
                    workers: WORKERS,
                    seed: 0,
                    // Who takes several at once has taken as many locks with half of the acquisitions.
                    enough: if *work == "multi" { ENOUGH / 2 } else { ENOUGH },
                });
            }
        }
        if members > 1 && hurts.contains(&"kill-store") {
            rows.push(often(name, lease_ms));
        }
    }
    for (at, row) in rows.iter_mut().enumerate() {
        row.seed = 2_000 + at as u64;
    }
    Ok((rows, untested))
}

/// The leader of a cluster is killed as soon as there is one: how long does it take until a lock can be had again?
fn often(target: &str, lease_ms: u32) -> Row {
    let [target, nemesis, work] = [target, "kill-store", "mutex"].map(str::to_string);
    Row { target, nemesis, work, seconds: 60, lease_ms, every_s: Some(3), workers: 8, seed: 0, enough: ENOUGH }
}

/// What a variant of a store is asked besides what its first one cannot be.
const IN_ANOTHER_WAY: &[&str] = &["none", "kill-holder", "pause-holder", "kill-store"];

/// What workers do, the control first.
const WORKS: &[&str] = &["nothing", "mutex", "read-write", "semaphore", "multi", "reentrant"];

/// A list in what the program said.
pub fn list<'a>(value: &'a Value, field: &str) -> Result<&'a [Value], Trouble> {
    value[field].as_array().map(Vec::as_slice).ok_or_else(|| strange(field))
}

/// A word in what the program said.
pub fn text<'a>(value: &'a Value, field: &str) -> Result<&'a str, Trouble> {
    value[field].as_str().ok_or_else(|| strange(field))
}

fn strange(what: &str) -> Trouble {
    Trouble::new(format!("the program says nothing that can be read of `{what}`"))
        .hint("is the program of this very tree? `cargo build -p lockkeeper-cli`")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;

    #[test]
    fn the_full_matrix_is_every_target_against_all_that_can_be_done() {
        let said = json!({ "targets": [
            { "target": "a", "scheme": "a", "members": 1, "lease_min_ms": 100, "nemesis": ["kill-holder", "cut"], "cannot": [] },
            { "target": "b", "scheme": "b", "members": 0, "lease_min_ms": 100, "nemesis": [],
              "cannot": [{ "nemesis": "cut", "why": "it is a file" }] },
            { "target": "a-fast", "scheme": "a", "members": 1, "lease_min_ms": 100, "nemesis": ["cut"], "cannot": [] },
            { "target": "a-3", "scheme": "a", "members": 3, "lease_min_ms": 2_000, "nemesis": ["cut", "kill-store"], "cannot": [] },
        ] });
        let (rows, untested) = all(&said).unwrap();
        let names: Vec<String> = rows.iter().map(Row::name).collect();
        for name in ["a-none", "a-kill-holder", "a-cut", "a-none-nothing", "a-kill-holder-multi", "b-none-semaphore"] {
            assert!(names.iter().any(|known| known == name), "{name} in {names:?}");
        }
        assert!(!names.iter().any(|name| name == "a-fast-none-multi"), "a variant has the same kinds");
        for name in ["a-3-none-multi", "a-3-cut", "a-3-kill-store", "a-3-kill-store-every-3s"] {
            assert!(names.iter().any(|known| known == name), "a cluster is no variant: {name} in {names:?}");
        }
        assert!(rows.iter().all(|row| (row.lease_ms == 2_000) == (row.target == "a-3")), "leases that the store gives");
        assert!(!names.iter().any(|name| name == "a-cut-multi" || name == "a-cut-nothing"), "{names:?}");
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "every row has a name of its own");
        let why = "it is a file".to_string();
        assert_eq!(untested, [Untested { target: "b".to_string(), nemesis: "cut".to_string(), why }]);
        assert!(all(&json!({})).unwrap_err().to_string().contains("targets"));
    }

    #[test]
    fn the_smoke_matrix_has_a_control_and_takes_about_two_minutes() {
        let rows = smoke();
        assert_eq!(rows.iter().filter(|row| row.is_control()).count(), 1);
        // Each row also waits for the last leases to end, and looks at what is left.
        let seconds: u32 = rows.iter().map(|row| row.seconds + row.lease_ms / 1_000 + 3).sum();
        assert!(seconds <= 160, "{seconds}");
        assert_eq!(
            rows[0].args().join(" "),
            "verify sqlite --nemesis none --work nothing --for 3s --lease 1000ms --locks 3 --workers 4 --seed 1000 --json"
        );
    }
}
