//! What is kept on disk, and so what a kill and a power loss can take.

use lockkeeper_core::checkup::{Finding, Kept, Level, Promise, Report};

use super::seen::Seen;
use super::server;

const TOPIC: &str = "persistence";
const USE_AOF: &str = "turn the append-only file on: `appendonly yes`, in its configuration file too";
const USE_ALWAYS: &str = "set `appendfsync always`; every change of a lock then waits for the disk";

/// Facts, findings and promises about what is kept.
pub(crate) fn tell(seen: &Seen, report: &mut Report) {
    match seen.info("aof_enabled") {
        Some("1") => {
            append_only(seen, report);
            read_back(seen, report);
        }
        Some(_) => snapshots(seen, report),
        None => unseen(report),
    }
    if seen.info("loading") == Some("1") {
        let means = "no lock can be taken until it has read its data";
        report.find(Finding::new(TOPIC, Level::Danger, "it is still loading its data", means));
    }
}

fn unseen(report: &mut Report) {
    let change = "let this user run INFO and CONFIG GET: `ACL SETUSER NAME +info +config|get`";
    report.fact(TOPIC, "could not be seen");
    let means = "what a restart or a power loss takes is not known, and so not promised";
    report.find(Finding::new(TOPIC, Level::Note, "this user may not see it", means).with_change(change));
    for promise in [Promise::Restart, Promise::PowerLoss] {
        let why = "what the server keeps on disk could not be seen";
        report.promise(promise, Kept::Unknown, why, Some(change.to_owned()));
    }
}

fn append_only(seen: &Seen, report: &mut Report) {
    let fsync = seen.config.get("appendfsync");
    report.fact(TOPIC, format!("append-only file, appendfsync {}", fsync.unwrap_or("could not be seen")));
    report.promise(Promise::Restart, true, "every change is in the append-only file", None);
    let gap = seen.config.is("no-appendfsync-on-rewrite", "yes");
    let (kept, finding): (Kept, Finding) = match fsync {
        Some("always") if gap => {
            let found = "appendfsync is always, but not while the file is rewritten (`no-appendfsync-on-rewrite yes`)";
            let means = "a kill takes nothing; a power loss during a rewrite takes up to half a minute of locks";
            let change = "set `no-appendfsync-on-rewrite no`";
            (Kept::No, Finding::new(TOPIC, Level::Warning, found, means).with_change(change))
        }
        Some("always") => {
            let found = "every change is on disk before it is answered (appendfsync always)";
            (server::always_is_always(seen).into(), Finding::good(TOPIC, found))
        }
        Some("everysec") => {
            let means = "a kill takes nothing while the disk keeps up, and up to two seconds if it does not; a power loss \
                takes the last second or two of locks";
            (Kept::No, Finding::new(TOPIC, Level::Note, "appendfsync is everysec", means).with_change(USE_ALWAYS))
        }
        Some(other) => {
            let means =
                "a kill takes nothing; a power loss takes what the system had not written yet, half a minute or so";
            let found = format!("appendfsync is {other}");
            (Kept::No, Finding::new(TOPIC, Level::Warning, found, means).with_change(USE_ALWAYS))
        }
        None => {
            let means = "a kill takes nothing while the disk keeps up; what a power loss takes is not known";
            let change = "let this user run CONFIG GET: `ACL SETUSER NAME +config|get`";
            let found = "appendfsync could not be seen";
            (Kept::Unknown, Finding::new(TOPIC, Level::Note, found, means).with_change(change))
        }
    };
    let why = match kept {
        Kept::Yes => "every change is on disk before it is answered".to_owned(),
        _ => finding.found.clone(),
    };
    let change = (kept != Kept::Yes).then(|| finding.change.clone().unwrap_or_else(|| "use a newer server".to_owned()));
    report.promise(Promise::PowerLoss, kept, why, change);
    report.find(finding);
    if let Some(times) = seen.count("aof_delayed_fsync").filter(|times| *times > 0) {
        let found = format!("the disk was too slow for the append-only file {times} times since the server started");
        let means = "at such a moment a kill takes up to two seconds of locks, and everybody waits";
        report.find(Finding::new(TOPIC, Level::Warning, found, means).with_change("give it a disk that is faster"));
    }
    if seen.info("aof_last_write_status").is_some_and(|status| status != "ok") {
        let means = "the server refuses every change until it can write again";
        let finding = Finding::new(TOPIC, Level::Danger, "the last write to the append-only file failed", means);
        report.find(finding.with_change("see the server's log and its disk"));
        report.promise(Promise::Restart, false, "the append-only file cannot be written", None);
    }
    if seen.info("aof_last_bgrewrite_status").is_some_and(|status| status != "ok") {
        let means = "the file grows until the disk is full, and then no lock can be taken";
        let finding = Finding::new(TOPIC, Level::Warning, "the last rewrite of the append-only file failed", means);
        report.find(finding.with_change("see the server's log and its disk"));
    }
}

/// What a script wrote is one transaction in the file, and is read back with the rights of the user without a name.
fn read_back(seen: &Seen, report: &mut Report) {
    if !server::reads_back_as_default_user(seen) {
        return;
    }
    let change = "let the default user write, though nobody may come in as it: `ACL SETUSER default off resetpass ~* &* \
        +@all`, in its configuration too";
    match seen.default_user_writes {
        Some(true) => {}
        Some(false) => {
            let found = "the default user may not write, and this server reads its append-only file with that user's \
                rights (redis#14541)";
            let means = "after a restart, locks that somebody waited for, shared or had permits of are silently gone";
            report.find(Finding::new(TOPIC, Level::Danger, found, means).with_change(change));
            for promise in [Promise::Restart, Promise::PowerLoss] {
                let why = "what scripts wrote is thrown away when the server reads its append-only file";
                report.promise(promise, false, why, Some(change.to_owned()));
            }
        }
        None => {
            let found = "whether the default user may write could not be seen";
            let means = "if it may not, this server throws away what scripts wrote when it restarts (redis#14541)";
            let finding = Finding::new(TOPIC, Level::Note, found, means);
            report.find(finding.with_change("let this user ask: `ACL SETUSER NAME +acl|dryrun`"));
            for promise in [Promise::Restart, Promise::PowerLoss] {
                if report.kept(promise) == Kept::Yes {
                    report.promise(promise, Kept::Unknown, found, Some(change.to_owned()));
                }
            }
        }
    }
}

fn snapshots(seen: &Seen, report: &mut Report) {
    let save = seen.config.get("save");
    let taken_every = save.filter(|save| !save.is_empty());
    let (fact, means) = match (save, taken_every) {
        (_, Some(save)) => {
            let unsaved = seen.count("rdb_changes_since_last_save").unwrap_or_default();
            let means = format!(
                "a kill or a power loss takes all locks since the last snapshot ({unsaved} changes now); only a clean \
                    shutdown keeps them"
            );
            (format!("snapshots only (save {save})"), means)
        }
        (Some(_), None) => ("none".to_owned(), "a restart frees every lock while its holders work on".to_owned()),
        (None, None) => {
            let means = "a kill or a power loss takes all locks since the last snapshot, if there are any".to_owned();
            ("no append-only file; snapshots could not be seen".to_owned(), means)
        }
    };
    let found = match taken_every {
        Some(_) => "there are snapshots, but no append-only file",
        None => "nothing is kept on disk",
    };
    report.find(Finding::new(TOPIC, Level::Warning, found, means).with_change(USE_AOF));
    report.fact(TOPIC, fact);
    for promise in [Promise::Restart, Promise::PowerLoss] {
        report.promise(promise, false, found, Some(USE_AOF.to_owned()));
    }
    let failed = seen.info("rdb_last_bgsave_status").is_some_and(|status| status != "ok");
    if failed && taken_every.is_some() {
        let stops = !seen.config.is("stop-writes-on-bgsave-error", "no");
        let (level, means) = match stops {
            true => (Level::Danger, "the server refuses every change until a snapshot succeeds"),
            false => (Level::Warning, "what a restart brings back grows older and older"),
        };
        let finding = Finding::new(TOPIC, level, "the last snapshot failed", means);
        report.find(finding.with_change("see the server's log and its disk"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::tests::{DURABLE, PLAIN, seen, with};

    fn told(seen: &Seen) -> Report {
        let mut report = Report::new("redis", "");
        tell(seen, &mut report);
        report
    }

    fn survives(report: &Report) -> (Kept, Kept) {
        (report.kept(Promise::Restart), report.kept(Promise::PowerLoss))
    }

    #[test]
    fn what_a_kill_and_a_power_loss_take() {
        let durable = seen(DURABLE);
        assert_eq!(survives(&told(&durable)), (Kept::Yes, Kept::Yes));
        for (setting, value, survived) in [
            ("appendfsync", "everysec", (Kept::Yes, Kept::No)),
            ("appendfsync", "no", (Kept::Yes, Kept::No)),
            ("no-appendfsync-on-rewrite", "yes", (Kept::Yes, Kept::No)),
        ] {
            assert_eq!(survives(&told(&with(&durable, setting, value))), survived, "{setting} {value}");
        }
        let hidden = Seen { config: Default::default(), ..durable.clone() };
        assert_eq!(survives(&told(&hidden)), (Kept::Yes, Kept::Unknown));
        assert_eq!(survives(&told(&Seen::default())), (Kept::Unknown, Kept::Unknown));
        let old = seen(&DURABLE.replace("7.0.15", "6.2.14"));
        assert_eq!(survives(&told(&old)), (Kept::Yes, Kept::No), "always was not always before 7.0");
    }

    #[test]
    fn snapshots_are_not_enough() {
        let plain = seen(PLAIN);
        let none = told(&plain);
        assert_eq!((survives(&none), none.findings[0].level), ((Kept::No, Kept::No), Level::Warning));
        let some = with(&plain, "save", "3600 1 300 100");
        assert_eq!(told(&some).facts[0].value, "snapshots only (save 3600 1 300 100)");
        assert_eq!(survives(&told(&some)), (Kept::No, Kept::No));
        let failed = PLAIN.replace("rdb_last_bgsave_status:ok", "rdb_last_bgsave_status:err");
        assert_eq!(told(&with(&seen(&failed), "save", "60 1")).worst(), Level::Danger);
    }

    #[test]
    fn trouble_with_the_disk_is_told() {
        for (from, to, worst) in [
            ("aof_last_write_status:ok", "aof_last_write_status:err", Level::Danger),
            ("aof_last_bgrewrite_status:ok", "aof_last_bgrewrite_status:err", Level::Warning),
            ("aof_delayed_fsync:0", "aof_delayed_fsync:7", Level::Warning),
            ("loading:0", "loading:1", Level::Danger),
        ] {
            assert!(DURABLE.contains(from), "{from}");
            assert_eq!(told(&seen(&DURABLE.replace(from, to))).worst(), worst, "{to}");
        }
    }

    #[test]
    fn a_default_user_without_rights_loses_what_scripts_wrote() {
        let denied = Seen { default_user_writes: Some(false), ..seen(DURABLE) };
        let report = told(&denied);
        assert_eq!((survives(&report), report.worst()), ((Kept::No, Kept::No), Level::Danger));
        let hidden = Seen { default_user_writes: None, ..seen(DURABLE) };
        assert_eq!(survives(&told(&hidden)), (Kept::Unknown, Kept::Unknown));
        let repaired = Seen { default_user_writes: Some(false), ..seen(&DURABLE.replace("7.0.15", "8.6.1")) };
        assert_eq!(survives(&told(&repaired)), (Kept::Yes, Kept::Yes));
    }
}
