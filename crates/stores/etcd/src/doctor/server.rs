//! Which versions these are, and which of their known faults touch locks.
//!
//! Surprise: a fault stands here only if etcd's own release notes say so; what is not listed was not looked up, and is no
//! promise.

use std::collections::BTreeSet;
use std::fmt;

use lockkeeper_core::checkup::{Finding, Level, Report};

use super::seen::Seen;

/// The oldest that locks are made for.
const OLDEST: Version = Version([3, 4, 0]);

/// A version, as far as it can be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version([u32; 3]);

impl Version {
    pub(super) fn read(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '.').map(|part| {
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

/// A fault of some versions.
struct Fault {
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
enum Touches {
    /// A cluster of one.
    One,
    /// One of several.
    Several,
}

/// Release notes of 3.4.31 (#17465) and 3.5.13 (#17425): "leases wrongly revoked by the leader".
const STALE_LEADER: Fault = Fault {
    versions: &[([0, 0, 0], [3, 4, 31]), ([3, 5, 0], [3, 5, 13])],
    touches: Touches::Several,
    level: Level::Warning,
    what: "a leader that was stuck while another was elected may end leases early, and keeps leases alive that it has no say \
        over any more (etcd#15247)",
    means: "a keep-alive counts here only with a read that a majority confirmed after it, so nobody believes in it wrongly; \
        but a hold may be ended early, and its holder finds out at its next renewal: use the token",
    change: "use etcd 3.4.31, 3.5.13 or later",
};

/// Release notes of 3.5.3 (#13908): "Inconsistent revision and data occurs".
const INCONSISTENT: Fault = Fault {
    versions: &[([3, 5, 0], [3, 5, 3])],
    touches: Touches::Several,
    level: Level::Danger,
    what: "a member that is killed under load may come back with other data than the rest (etcd#13908)",
    means: "members that disagree may give one lock twice",
    change: "use etcd 3.5.3 or later",
};

/// Release notes of 3.4.21 (#14423) and 3.5.5 (#14424): "Durability API guarantee broken in single node cluster".
const NOT_DURABLE: Fault = Fault {
    versions: &[([0, 0, 0], [3, 4, 21]), ([3, 5, 0], [3, 5, 5])],
    touches: Touches::One,
    level: Level::Warning,
    what: "a cluster of one answers before it has written (etcd#14424)",
    means: "a kill or a power loss may take the last moments: a lock may then be given twice",
    change: "use etcd 3.4.21, 3.5.5 or later, or three members",
};

const FAULTS: &[Fault] = &[STALE_LEADER, INCONSISTENT, NOT_DURABLE];

impl Fault {
    fn is_in(&self, version: Version, voters: usize) -> bool {
        let touched = if voters > 1 { Touches::Several } else { Touches::One };
        let of_these = |(from, before): &([u32; 3], [u32; 3])| (Version(*from)..Version(*before)).contains(&version);
        self.touches == touched && self.versions.iter().any(of_these)
    }
}

/// Does it write before it answers, as far as its version goes?
pub(super) fn writes_first(seen: &Seen) -> bool {
    let voters = seen.voters().unwrap_or(1);
    !versions(seen).iter().any(|version| NOT_DURABLE.is_in(*version, voters))
}

fn versions(seen: &Seen) -> BTreeSet<Version> {
    seen.statuses().filter_map(|(_, status)| Version::read(&status.version)).collect()
}

/// Facts and findings about versions.
pub(super) fn tell(seen: &Seen, report: &mut Report) {
    let versions = versions(seen);
    let all: Vec<String> = versions.iter().map(ToString::to_string).collect();
    report.fact("server", if all.is_empty() { "etcd, unknown".to_owned() } else { format!("etcd {}", all.join(", ")) });
    let Some(oldest) = versions.first() else {
        let means = "known faults of its version are not known here";
        return report.find(Finding::new("version", Level::Note, "it could not be seen", means));
    };
    if *oldest < OLDEST {
        let found = format!("etcd {oldest} is older than {OLDEST}");
        let means = "locks were never tried with it";
        return report.find(Finding::new("version", Level::Danger, found, means).with_change("use etcd 3.4 or later"));
    }
    if versions.len() > 1 {
        let found = format!("members of several versions: {}", all.join(", "));
        let means = "the cluster does what its oldest member does: an upgrade is under way, or was left half done";
        let finding = Finding::new("version", Level::Note, found, means);
        report.find(finding.with_change("bring all members to one version"));
    }
    let voters = seen.voters().unwrap_or(1);
    let mut sound = true;
    for fault in FAULTS.iter().filter(|fault| versions.iter().any(|version| fault.is_in(*version, voters))) {
        sound = false;
        report.find(Finding::new("version", fault.level, fault.what, fault.means).with_change(fault.change));
    }
    if sound {
        report.find(Finding::good("version", format!("etcd {oldest}, without a known fault that touches locks")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::tests::{cluster, levels};

    #[test]
    fn versions_are_compared_by_number() {
        let version = |text| Version::read(text).unwrap();
        assert!(version("3.4.9") < version("3.4.23") && version("3.5") < version("3.5.1-rc.1"));
        assert_eq!(version("3.6.0-alpha.0").to_string(), "3.6.0");
        assert!(Version::read("").is_none() && Version::read("Not decided").is_none());
    }

    fn told(versions: &[&str]) -> Vec<Level> {
        let mut seen = cluster(versions.len());
        for (place, version) in seen.places.iter_mut().zip(versions) {
            if let super::super::seen::Said::Status(status) = &mut place.said {
                status.version = (*version).to_owned();
            }
        }
        levels(|report| tell(&seen, report))
    }

    #[test]
    fn faults_are_told_only_where_they_touch() {
        assert_eq!(told(&["3.4.23"; 3]), [Level::Warning], "the stale leader");
        assert_eq!(told(&["3.4.23"]), [Level::Good], "there is no other leader");
        assert_eq!(told(&["3.4.31"; 3]), [Level::Good]);
        assert_eq!(told(&["3.5.2"; 3]), [Level::Warning, Level::Danger]);
        assert_eq!(told(&["3.5.12"; 3]), [Level::Warning]);
        assert_eq!(told(&["3.5.13"; 3]), [Level::Good]);
        assert_eq!(told(&["3.6.1"; 3]), [Level::Good]);
        assert_eq!(told(&["3.4.20"]), [Level::Warning], "not durable");
        assert_eq!(told(&["3.3.27"; 3]), [Level::Danger], "too old");
        assert_eq!(told(&["3.5.13", "3.6.1", "3.6.1"]), [Level::Note, Level::Good], "an upgrade");
        assert_eq!(told(&["odd"]), [Level::Note]);
    }
}
