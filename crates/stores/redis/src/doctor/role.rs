//! Is this the server that decides, and who has copies of it?

use lockkeeper_core::checkup::{Finding, Kept, Level, Promise, Report};

use super::seen::Seen;

const TOPIC: &str = "role";

/// Facts, findings and promises about role, replicas and clusters.
pub(crate) fn tell(seen: &Seen, report: &mut Report) {
    let mode = seen.info("redis_mode").or_else(|| seen.info("server_mode")).or_else(|| seen.hello.get("mode"));
    let clustered = seen.info("cluster_enabled") == Some("1") || mode == Some("cluster");
    let role = seen.info("role").or_else(|| seen.hello.get("role"));
    let copies = seen.count("connected_slaves");
    report.fact(TOPIC, fact(mode, role, copies));
    if clustered || mode == Some("sentinel") {
        let (found, means) = match clustered {
            true => ("it is part of a cluster", "this URL reaches one of its servers, and most names live on others"),
            false => ("it is a sentinel", "it knows where the server is, but keeps no locks"),
        };
        let change = "name a single server";
        report.find(Finding::new(TOPIC, Level::Danger, found, means).with_change(change));
        report.promise(Promise::WritablePrimary, false, found, Some(change.to_owned()));
    } else {
        of_one(seen, role, report);
    }
    copied(seen, copies, report);
}

fn fact(mode: Option<&str>, role: Option<&str>, copies: Option<u64>) -> String {
    let role = match role {
        Some("master") => "primary",
        Some("slave" | "replica") => "replica",
        Some(other) => other,
        None => "could not be seen",
    };
    let copies = copies.map(|copies| format!(", replicas: {copies}")).unwrap_or_default();
    let mode = mode.filter(|mode| *mode != "standalone").map(|mode| format!(", {mode}")).unwrap_or_default();
    format!("{role}{mode}{copies}")
}

fn of_one(seen: &Seen, role: Option<&str>, report: &mut Report) {
    let two_masters = role == Some("active-replica") || seen.config.is("active-replica", "yes");
    match role {
        _ if two_masters => {
            let found = "it is an active replica: several servers take writes, and the newest write wins";
            let means = "two who ask two of them both get the lock";
            let change = "use one server that takes writes: `active-replica no`";
            report.find(Finding::new(TOPIC, Level::Danger, found, means).with_change(change));
            report.promise(Promise::WritablePrimary, false, found, Some(change.to_owned()));
        }
        Some("master") => {
            report.find(Finding::good(TOPIC, "it is a primary"));
            report.promise(Promise::WritablePrimary, true, "it is a primary", None);
        }
        Some("slave" | "replica") => {
            let of = match (seen.info("master_host"), seen.info("master_port")) {
                (Some(host), Some(port)) => format!(" of {host}:{port}"),
                _ => String::new(),
            };
            let found = format!("it is a replica{of}");
            let change = "name the primary".to_owned();
            let means = "locks cannot be taken here, and what it shows of them is late";
            report.find(Finding::new(TOPIC, Level::Danger, found.clone(), means).with_change(change.clone()));
            report.promise(Promise::WritablePrimary, false, found, Some(change));
        }
        other => {
            let found = other.map_or_else(|| "it could not be seen".to_owned(), |role| format!("its role is {role}"));
            let means = "whether this is the server that decides is not known";
            let change = "let this user run INFO: `ACL SETUSER NAME +info`".to_owned();
            report.find(Finding::new(TOPIC, Level::Note, found.clone(), means).with_change(change.clone()));
            report.promise(Promise::WritablePrimary, Kept::Unknown, found, Some(change));
        }
    }
}

/// Copies are made after the answer, whatever else is set.
fn copied(seen: &Seen, copies: Option<u64>, report: &mut Report) {
    let change = "fence what must stay right with tokens".to_owned();
    match copies {
        Some(0) => report.promise(Promise::Failover, false, "there is no copy of it", Some(change)),
        _ => {
            let why = "copies are made after the answer, so one that takes over may not know the last locks";
            report.promise(Promise::Failover, false, why, Some(change));
        }
    }
    let Some(copies) = copies.filter(|copies| *copies > 0) else { return };
    let means = "if a replica takes over, locks of the last moments are given a second time";
    match seen.config.number("min-replicas-to-write") {
        Some(0) => {
            let found = format!("{copies} replicas, and writes are taken without any of them");
            let means = format!("{means}; a primary that is cut off goes on giving locks beside the new one");
            let change = "set `min-replicas-to-write 1` and `min-replicas-max-lag 1`";
            report.find(Finding::new("replicas", Level::Warning, found, means).with_change(change));
        }
        Some(least) => {
            let lag = seen.config.number("min-replicas-max-lag").unwrap_or(10);
            let found = format!("{copies} replicas, of which {least} must be at most {lag} s behind");
            report.find(Finding::new("replicas", Level::Note, found, means));
        }
        None => {
            let found = format!("{copies} replicas; `min-replicas-to-write` could not be seen");
            let change = "let this user run CONFIG GET: `ACL SETUSER NAME +config|get`";
            report.find(Finding::new("replicas", Level::Note, found, means).with_change(change));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::tests::{KEYDB, PLAIN, REPLICA, seen, with};

    fn told(seen: &Seen) -> (Kept, Level, String) {
        let mut report = Report::new("redis", "");
        tell(seen, &mut report);
        assert_eq!(report.kept(Promise::Failover), Kept::No);
        (report.kept(Promise::WritablePrimary), report.worst(), report.facts[0].value.clone())
    }

    #[test]
    fn only_a_primary_decides() {
        assert_eq!(told(&seen(PLAIN)), (Kept::Yes, Level::Good, "primary, replicas: 0".to_owned()));
        assert_eq!(told(&seen(REPLICA)), (Kept::No, Level::Danger, "replica, replicas: 0".to_owned()));
        assert_eq!(told(&seen(KEYDB)), (Kept::No, Level::Danger, "active-replica, replicas: 1".to_owned()));
        let clustered = PLAIN.replace("cluster_enabled:0", "cluster_enabled:1");
        assert_eq!(told(&seen(&clustered)).1, Level::Danger);
        let sentinel = PLAIN.replace("redis_mode:standalone", "redis_mode:sentinel");
        assert_eq!(told(&seen(&sentinel)).0, Kept::No);
        assert_eq!(told(&Seen::default()).0, Kept::Unknown);
        let hello = super::super::seen::Fields::of_info("mode:standalone\nrole:master");
        assert_eq!(told(&Seen { hello, ..Seen::default() }).0, Kept::Yes, "everybody is told that");
    }

    #[test]
    fn replicas_are_no_safety() {
        let copied = seen(&PLAIN.replace("connected_slaves:0", "connected_slaves:2"));
        assert_eq!(told(&with(&copied, "min-replicas-to-write", "0")).1, Level::Warning);
        assert_eq!(told(&with(&copied, "min-replicas-to-write", "1")).1, Level::Note);
        let hidden = Seen { config: Default::default(), ..copied };
        assert_eq!(told(&hidden).1, Level::Note);
    }
}
