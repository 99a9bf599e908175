//! Is this file fit to be trusted with locks? What `lockkeeper doctor` says of it.
//!
//! There is little to ask: no server, no users. Surprise: on a file system in memory even `sync=full` survives nothing.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use lockkeeper_core::checkup::{Finding, Level, Promise, Report, Trial, trial};
use lockkeeper_core::store::Store;
use lockkeeper_core::{ClaimId, Name, Result};

use crate::place::{FileSystem, file_system, free_bytes};
use crate::store::Sqlite;
use crate::{Options, Sync};

/// With less room than this, locks may soon not be written any more.
const LITTLE_ROOM: u64 = 64 << 20;

/// Looks a file over; it is made if it is missing, as by [`Sqlite::open`].
///
/// # Errors
/// What keeps the file from being opened.
pub async fn checkup(options: Options) -> Result<Report> {
    let sync = options.sync;
    let path = std::path::absolute(&options.path).unwrap_or_else(|_| options.path.clone());
    let store = Sqlite::open(options).await?;
    let tried = trial(&*store, &Name::new(&format!("doctor/{}", ClaimId::random()?))?).await;
    let mut report = Report::new("sqlite", path.display().to_string());
    report.promise_of(store.profile());
    tell_place(&path, &mut report);
    tell_keeping(sync, file_system(&path), &mut report);
    tell_wake(store.hears(), &mut report);
    tell_trial(&tried, &mut report);
    let _ = store.close().await;
    Ok(report.sorted())
}

fn tell_place(path: &Path, report: &mut Report) {
    report.promise(Promise::WritablePrimary, true, "there is one file, and it is this one", None);
    report.promise(Promise::NoEviction, true, "nothing is ever thrown away", None);
    let change = Some("use a store with a server when several machines take part".to_owned());
    report.promise(Promise::Failover, false, "the file is on one machine, and only there", change);
    if let Ok(found) = std::fs::metadata(path) {
        let mode = found.mode() & 0o777;
        report.fact("file", format!("{} bytes, mode {mode:04o}", found.len()));
        if mode & 0o002 != 0 {
            let means = "anybody on this machine can change or damage the locks";
            let finding = Finding::new("file", Level::Warning, "everybody may write the file", means);
            report.find(finding.with_change(format!("`chmod o-rw {}`", path.display())));
        }
    }
    if let Some(free) = free_bytes(path) {
        report.fact("free", format!("{} MiB", free >> 20));
        if free < LITTLE_ROOM {
            let found = format!("{} MiB are free on its disk", free >> 20);
            let means = "when it is full, no lock can be taken or renewed";
            report.find(Finding::new("free", Level::Warning, found, means).with_change("make room"));
        }
    }
}

fn tell_keeping(sync: Sync, on: Option<FileSystem>, report: &mut Report) {
    let (word, full) = match sync {
        Sync::Full => ("full", true),
        Sync::Normal => ("normal", false),
    };
    report.fact("sync", word);
    report.fact("file system", on.as_ref().map_or("unknown", |on| on.name.as_str()));
    report.promise(Promise::Restart, true, "the file is there after a restart, with its locks", None);
    if on.is_some_and(|on| on.in_memory) {
        let found = "the file is in memory, not on a disk";
        let change = "use a path on a disk".to_owned();
        let means = "all locks are gone when the machine restarts; those who held them then are gone too";
        report.find(Finding::new("persistence", Level::Note, found, means).with_change(change.clone()));
        return report.promise(Promise::PowerLoss, false, found, Some(change));
    }
    if full {
        report.find(Finding::good("persistence", "every answer is on disk before it is given (sync=full)"));
        return report.promise(Promise::PowerLoss, true, "every answer is on disk before it is given", None);
    }
    let found = "sync is normal";
    let change = "take `sync=normal` out of the store's URL".to_owned();
    let means = "a power loss may take the last moments: a lock may then be given twice, with a greater token";
    report.find(Finding::new("persistence", Level::Warning, found, means).with_change(change.clone()));
    report.promise(Promise::PowerLoss, false, found, Some(change));
}

fn tell_wake(hears: bool, report: &mut Report) {
    if hears {
        return report.find(Finding::good("wake-ups", "changes of other processes are heard at once"));
    }
    let means = "those who wait look by themselves, up to four times a second";
    report.find(Finding::new("wake-ups", Level::Note, "changes of other processes are not heard", means));
    report.promise(Promise::Push, false, "changes of other processes are not heard", None);
}

fn tell_trial(tried: &Result<Trial>, report: &mut Report) {
    match tried {
        Ok(trial) => {
            report.fact("hand-over", format!("{:.1} ms", trial.handed_over_in.as_secs_f64() * 1e3));
            let found = "a lock was taken, renewed, handed over and released";
            report.find(Finding::good("trial", found));
            report.promise(Promise::Usable, true, found, None);
        }
        Err(error) => {
            let finding = Finding::new("trial", Level::Danger, error.to_string(), "locks do not work here");
            report.find(match error.hint() {
                Some(hint) => finding.with_change(hint),
                None => finding,
            });
            report.promise(Promise::Usable, false, error.to_string(), error.hint().map(str::to_owned));
        }
    }
}

#[cfg(test)]
mod tests {
    use lockkeeper_core::checkup::Kept;

    use super::*;

    fn kept(sync: Sync, in_memory: bool) -> (Kept, Kept, Level) {
        let mut report = Report::new("sqlite", "");
        tell_keeping(sync, Some(FileSystem { name: "x".to_owned(), in_memory }), &mut report);
        (report.kept(Promise::Restart), report.kept(Promise::PowerLoss), report.worst())
    }

    #[test]
    fn what_a_power_loss_takes() {
        assert_eq!(kept(Sync::Full, false), (Kept::Yes, Kept::Yes, Level::Good));
        assert_eq!(kept(Sync::Normal, false), (Kept::Yes, Kept::No, Level::Warning));
        assert_eq!(kept(Sync::Full, true), (Kept::Yes, Kept::No, Level::Note));
    }

    #[tokio::test]
    async fn a_file_is_looked_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("locks.db");
        let report = checkup(Options::at(&path)).await.unwrap();
        assert_eq!((report.store, report.address.as_str()), ("sqlite", path.to_str().unwrap()));
        for promise in [Promise::Usable, Promise::Restart, Promise::NoEviction, Promise::Tokens, Promise::Fair] {
            assert_eq!(report.kept(promise), Kept::Yes, "{promise:?}");
        }
        assert_eq!(report.kept(Promise::Failover), Kept::No);
        let facts: Vec<&str> = report.facts.iter().map(|fact| fact.topic).collect();
        assert!(["file", "sync", "file system", "hand-over"].iter().all(|topic| facts.contains(topic)), "{facts:?}");
    }

    #[tokio::test]
    async fn a_file_that_everybody_may_write_is_told() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("locks.db");
        let _ = checkup(Options::at(&path)).await.unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
        let report = checkup(Options::at(&path)).await.unwrap();
        assert!(report.findings.iter().any(|finding| finding.found == "everybody may write the file"));
    }
}
