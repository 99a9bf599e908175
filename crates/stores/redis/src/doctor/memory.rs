//! Memory: an evicted lock is a broken lock, and a full server takes no new ones.

use lockkeeper_core::checkup::{Finding, Kept, Level, Promise, Report};

use super::seen::Seen;

const TOPIC: &str = "eviction";
const NO_EVICTION: &str = "set `maxmemory-policy noeviction`, or give locks a server of their own";
/// From this share of its memory on, in percent, a server is nearly full.
const NEARLY_FULL: u64 = 90;

/// Facts, findings and promises about memory.
pub(crate) fn tell(seen: &Seen, report: &mut Report) {
    let policy = seen.setting("maxmemory_policy", "maxmemory-policy");
    let limit = seen.setting("maxmemory", "maxmemory").and_then(|limit| limit.parse::<u64>().ok());
    let used = seen.count("used_memory");
    report.fact("memory", fact(used, limit, policy));
    let (Some(policy), Some(limit)) = (policy, limit) else {
        let change = "let this user run INFO: `ACL SETUSER NAME +info`";
        let means = "if it evicts, a lock may be thrown away while its holder works";
        report.find(Finding::new(TOPIC, Level::Note, "it could not be seen", means).with_change(change));
        let why = "whether the server evicts could not be seen";
        return report.promise(Promise::NoEviction, Kept::Unknown, why, Some(change.to_owned()));
    };
    match (policy, limit) {
        ("noeviction", _) => {
            report.find(Finding::good(TOPIC, "nothing is evicted (noeviction)"));
            report.promise(Promise::NoEviction, true, "the policy is noeviction", None);
        }
        (policy, 0) => {
            let found = format!("the policy is {policy}, without a limit to enforce");
            let means = "nothing is evicted as long as `maxmemory` stays 0; with a limit, locks would be";
            report.find(Finding::new(TOPIC, Level::Note, found, means).with_change(NO_EVICTION));
            report.promise(Promise::NoEviction, true, "there is no limit on memory", None);
        }
        (policy, limit) => {
            let found = format!("{policy} with a limit of {}", bytes(limit));
            let means = "a lock may be thrown away while its holder works, and given to the next one";
            report.find(Finding::new(TOPIC, Level::Danger, found.clone(), means).with_change(NO_EVICTION));
            report.promise(Promise::NoEviction, false, found, Some(NO_EVICTION.to_owned()));
        }
    }
    if let Some(evicted) = seen.count("evicted_keys").filter(|evicted| *evicted > 0) {
        let found = format!("{evicted} keys were evicted since the server started");
        let means = "locks may have been among them";
        report.find(Finding::new(TOPIC, Level::Warning, found, means).with_change(NO_EVICTION));
    }
    if let Some(used) = used.filter(|used| limit > 0 && used.saturating_mul(100) >= limit.saturating_mul(NEARLY_FULL)) {
        let found = format!("{} of {} are in use", bytes(used), bytes(limit));
        let means = "when it is full, no lock can be taken or renewed; those that are held run out";
        let finding = Finding::new("memory", Level::Warning, found, means);
        report.find(finding.with_change("give it more memory, or find out what fills it"));
    }
}

fn fact(used: Option<u64>, limit: Option<u64>, policy: Option<&str>) -> String {
    let unseen = || "could not be seen".to_owned();
    let limit = match limit {
        Some(0) => "no limit".to_owned(),
        Some(limit) => format!("limit {}", bytes(limit)),
        None => "limit unknown".to_owned(),
    };
    match (used, policy) {
        (None, None) => unseen(),
        (used, policy) => {
            format!("{} in use, {limit}, {}", used.map_or_else(unseen, bytes), policy.unwrap_or("policy unknown"))
        }
    }
}

/// Bytes as people say them.
pub(crate) fn bytes(count: u64) -> String {
    let units = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match units.into_iter().find(|(_, size)| count >= *size) {
        Some((unit, size)) => format!("{}.{} {unit}", count / size, count % size * 10 / size),
        None => format!("{count} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::tests::{PLAIN, seen};

    fn told(text: &str) -> (Kept, Level) {
        let mut report = Report::new("redis", "");
        tell(&seen(text), &mut report);
        (report.kept(Promise::NoEviction), report.worst())
    }

    fn limited(policy: &str, limit: u64) -> String {
        PLAIN
            .replace("maxmemory_policy:noeviction", &format!("maxmemory_policy:{policy}"))
            .replace("maxmemory:0", &format!("maxmemory:{limit}"))
    }

    #[test]
    fn an_evicted_lock_is_a_broken_lock() {
        assert_eq!(told(PLAIN), (Kept::Yes, Level::Good));
        for policy in ["allkeys-lru", "allkeys-random", "volatile-ttl", "volatile-lru", "volatile-lfu"] {
            assert_eq!(told(&limited(policy, 1 << 30)), (Kept::No, Level::Danger), "{policy}");
            assert_eq!(told(&limited(policy, 0)), (Kept::Yes, Level::Note), "{policy}");
        }
        let evicted = PLAIN.replace("evicted_keys:0", "evicted_keys:12");
        assert_eq!(told(&evicted), (Kept::Yes, Level::Warning));
        assert_eq!(told("# Server\nredis_version:7.0.15"), (Kept::Unknown, Level::Note));
    }

    #[test]
    fn a_server_that_is_nearly_full_is_told() {
        assert_eq!(told(&limited("noeviction", 916_792)), (Kept::Yes, Level::Warning));
        assert_eq!(told(&limited("noeviction", 2_000_000)), (Kept::Yes, Level::Good));
    }

    #[test]
    fn bytes_are_short() {
        assert_eq!([bytes(12), bytes(2_048), bytes(1_572_864)], ["12 B", "2.0 KiB", "1.5 MiB"]);
    }
}
