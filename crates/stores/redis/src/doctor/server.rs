//! Which server this is, and which of its known faults touch locks.
//!
//! Surprise: a fault stands here only if the server's own release notes or its maintainers say so; what is not listed was
//! not looked up, and is no promise.

use std::fmt;

use lockkeeper_core::checkup::{Finding, Level, Report};

use super::seen::Seen;

/// The oldest that locks are made for.
const OLDEST: Version = Version([6, 2, 0]);

/// A version, as far as it can be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version([u32; 3]);

impl Version {
    fn read(text: &str) -> Option<Self> {
        let mut parts = text.trim_start_matches(|c: char| !c.is_ascii_digit()).splitn(3, '.').map(|part| {
            let digits = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
            part[..digits].parse().ok()
        });
        Some(Self([parts.next()??, parts.next()??, parts.next().flatten().unwrap_or(0)]))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.0;
        write!(f, "{major}.{minor}.{patch}")
    }
}

/// Who made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flavour {
    Redis,
    Valkey,
    KeyDb,
    Other(&'static str),
}

impl fmt::Display for Flavour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Redis => "Redis",
            Self::Valkey => "Valkey",
            Self::KeyDb => "KeyDB",
            Self::Other(name) => name,
        })
    }
}

/// Which server it is; `None` if not even its version is known.
pub(crate) fn identify(seen: &Seen) -> Option<(Flavour, Version)> {
    if let Some(version) = seen.info("valkey_version") {
        return Some((Flavour::Valkey, Version::read(version)?));
    }
    if let Some(version) = seen.info("dragonfly_version") {
        return Some((Flavour::Other("Dragonfly"), Version::read(version)?));
    }
    let version = Version::read(seen.info("redis_version").or_else(|| seen.hello.get("version"))?)?;
    let keydb = seen.info("mvcc_depth").is_some() || seen.info("executable").is_some_and(|path| path.contains("keydb"));
    Some(match seen.hello.get("server") {
        _ if keydb => (Flavour::KeyDb, version),
        Some("valkey") => (Flavour::Valkey, version),
        _ => (Flavour::Redis, version),
    })
}

/// A fault of some versions.
struct Fault {
    flavour: Flavour,
    /// First version with it, first without it, of every line that is known.
    versions: &'static [([u32; 3], [u32; 3])],
    touches: Touches,
    level: Level,
    what: &'static str,
    means: &'static str,
    change: &'static str,
}

/// Whom a fault touches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Touches {
    Everybody,
    /// Those with an append-only file.
    Aof,
    /// Those with `appendfsync always`.
    AofAlways,
}

const FAULTS: &[Fault] = &[
    Fault {
        flavour: Flavour::Redis,
        // Release notes of 7.0.0: "Durability fixes for appendfsync=always policy (#9678)".
        versions: &[([0, 0, 0], [7, 0, 0])],
        touches: Touches::AofAlways,
        level: Level::Warning,
        what: "before 7.0.0 an answer may go out before its write is on disk, with `io-threads` or behind a slow script \
            (redis#9678)",
        means: "`appendfsync always` does not promise what it says, so a kill or a power loss may take a lock",
        change: "use Redis 7.0 or later",
    },
    Fault {
        flavour: Flavour::Redis,
        // Release notes of 7.0.1: "Fix broken protocol after MISCONF (persistence) error (#10786)".
        versions: &[([7, 0, 0], [7, 0, 1])],
        touches: Touches::Everybody,
        level: Level::Warning,
        what: "7.0.0 sends a broken reply when it cannot write to its disk (redis#10786)",
        means: "connections break just when the disk fails, and what was asked is then not known",
        change: "use Redis 7.0.1 or later",
    },
    Fault {
        flavour: Flavour::Redis,
        // Release notes of 7.0.5 (#11004) and 7.0.11 (#11973).
        versions: &[([7, 0, 0], [7, 0, 11])],
        touches: Touches::Aof,
        level: Level::Note,
        what: "before 7.0.11 the end of the append-only file is not always flushed, above all around its rewrite \
            (redis#11004, redis#11973)",
        means: "a power loss may take more than the last second",
        change: "use Redis 7.0.11 or later",
    },
    Fault {
        flavour: Flavour::Valkey,
        // Release notes of 7.2.15, 8.0.11, 8.1.10 and 9.0.6 (#4342); 9.1.1 is older than the repair.
        versions: TRUNCATED_ON_VALKEY,
        touches: Touches::Aof,
        level: Level::Warning,
        what: "a script's writes that a power loss cut off in the append-only file spoil what is written after them \
            (valkey#4342)",
        means: "after a power loss and one more restart, locks taken in between may be gone",
        change: "use Valkey 7.2.15, 8.0.11, 8.1.10, 9.0.6, 9.1.2 or later",
    },
];

const TRUNCATED_ON_VALKEY: &[([u32; 3], [u32; 3])] = &[
    ([0, 0, 0], [7, 2, 15]),
    ([8, 0, 0], [8, 0, 11]),
    ([8, 1, 0], [8, 1, 10]),
    ([9, 0, 0], [9, 0, 6]),
    ([9, 1, 0], [9, 1, 2]),
];

fn within(version: Version, lines: &[([u32; 3], [u32; 3])]) -> bool {
    lines.iter().any(|(from, before)| (Version(*from)..Version(*before)).contains(&version))
}

/// Does it read transactions back with the rights of the user without a name? Repaired by redis#14545, which is in 8.6,
/// and by valkey#3984, in the releases of [`TRUNCATED_ON_VALKEY`]; seen on Redis 7.0.15.
pub(crate) fn reads_back_as_default_user(seen: &Seen) -> bool {
    match identify(seen) {
        Some((Flavour::Redis, version)) => version < Version([8, 6, 0]),
        Some((Flavour::Valkey, version)) => within(version, TRUNCATED_ON_VALKEY),
        Some((Flavour::KeyDb, _)) => true,
        Some((Flavour::Other(_), _)) | None => false,
    }
}

/// Is `appendfsync always` what it says?
pub(crate) fn always_is_always(seen: &Seen) -> bool {
    !faults(seen, &[Touches::AofAlways]).any(|fault| fault.touches == Touches::AofAlways)
}

fn faults(seen: &Seen, touched: &[Touches]) -> impl Iterator<Item = &'static Fault> {
    let server = identify(seen);
    FAULTS.iter().filter(move |fault| {
        let this = server.is_some_and(|(flavour, version)| flavour == fault.flavour && within(version, fault.versions));
        this && touched.contains(&fault.touches)
    })
}

/// Facts and findings about the server itself.
pub(crate) fn tell(seen: &Seen, report: &mut Report) {
    let Some((flavour, version)) = identify(seen) else {
        report.fact("server", "unknown");
        report.find(
            Finding::new(
                "version",
                Level::Note,
                "it could not be seen",
                "known faults of its version are not known here",
            )
            .with_change("let this user run INFO: `ACL SETUSER NAME +info`"),
        );
        return;
    };
    let up = seen.count("uptime_in_seconds").map(|seconds| format!(", up for {}", span(seconds))).unwrap_or_default();
    report.fact("server", format!("{flavour} {version}{up}"));
    if version < OLDEST && !matches!(flavour, Flavour::Other(_)) {
        let found = format!("{flavour} {version} is older than {OLDEST}");
        let means = "it lacks what locks here need, such as RESP3 for wake-ups, or was never tried with them";
        report.find(Finding::new("version", Level::Danger, found, means).with_change("use Redis 6.2 or later"));
        return;
    }
    if let Flavour::Other(name) = flavour {
        let means = "nothing here was tried on it, so nothing is promised but what the trial shows";
        report.find(Finding::new("version", Level::Warning, format!("it is {name}"), means));
        return;
    }
    let fsync = seen.info("aof_enabled") == Some("1");
    let always = fsync && seen.config.is("appendfsync", "always");
    let mut touched = vec![Touches::Everybody];
    touched.extend(fsync.then_some(Touches::Aof));
    touched.extend(always.then_some(Touches::AofAlways));
    let mut found = 0;
    for fault in faults(seen, &touched) {
        found += 1;
        report.find(Finding::new("version", fault.level, fault.what, fault.means).with_change(fault.change));
    }
    if found == 0 {
        let hidden = if seen.info.is_none() { "; those that hang on its settings are not known" } else { "" };
        let found = format!("{flavour} {version}, without a known fault that touches locks{hidden}");
        report.find(Finding::good("version", found));
    }
}

/// Seconds as people say them.
pub(crate) fn span(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h{}m", seconds / 3_600, seconds / 60 % 60),
        _ => format!("{}d{}h", seconds / 86_400, seconds / 3_600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::tests::{DURABLE, KEYDB, REPLICA, VALKEY, seen};

    fn version(text: &str) -> Version {
        Version::read(text).expect("a version")
    }

    #[test]
    fn versions_are_compared_by_number() {
        assert!(version("7.0.9") < version("7.0.15") && version("6.2") < version("6.2.1"));
        assert_eq!(version("df-v1.24.0").to_string(), "1.24.0");
        assert_eq!(version("255.255.255-rc1"), Version([255, 255, 255]));
        assert!(Version::read("").is_none() && Version::read("unstable").is_none());
    }

    #[test]
    fn servers_are_told_apart() {
        assert_eq!(identify(&seen(DURABLE)), Some((Flavour::Redis, version("7.0.15"))));
        assert_eq!(identify(&seen(VALKEY)), Some((Flavour::Valkey, version("8.1.4"))));
        assert_eq!(identify(&seen(KEYDB)), Some((Flavour::KeyDb, version("6.3.4"))));
        assert_eq!(identify(&seen(REPLICA)), Some((Flavour::Redis, version("7.0.15"))));
        assert_eq!(identify(&Seen::default()), None);
        let hidden =
            Seen { hello: super::super::seen::Fields::of_info("server:redis\nversion:7.2.4"), ..Seen::default() };
        assert_eq!(identify(&hidden), Some((Flavour::Redis, version("7.2.4"))));
    }

    fn levels(seen: &Seen) -> Vec<Level> {
        let mut report = Report::new("redis", "");
        tell(seen, &mut report);
        report.findings.iter().map(|finding| finding.level).collect()
    }

    #[test]
    fn faults_are_told_only_where_they_touch() {
        assert_eq!(levels(&seen(DURABLE)), [Level::Good]);
        assert_eq!(levels(&seen(&REPLICA.replace("7.0.15", "6.0.16"))), [Level::Danger], "too old");
        assert_eq!(levels(&seen(VALKEY)), [Level::Warning], "the append-only file of 8.1.4");
        assert_eq!(levels(&seen(&VALKEY.replace("8.1.4", "8.1.10"))), [Level::Good]);
        assert_eq!(levels(&seen(&VALKEY.replace("8.1.4", "9.1.1"))), [Level::Warning]);
        let old = seen(&DURABLE.replace("7.0.15", "6.2.14"));
        assert_eq!((levels(&old), always_is_always(&old)), (vec![Level::Warning], false));
        assert!(always_is_always(&seen(DURABLE)));
        assert_eq!(levels(&seen(&DURABLE.replace("7.0.15", "7.0.0"))), [Level::Warning, Level::Note]);
        assert!(reads_back_as_default_user(&seen(DURABLE)));
        assert!(!reads_back_as_default_user(&seen(&DURABLE.replace("7.0.15", "8.6.0"))));
    }
}
