//! What is said of a report, and the trial on a store that works and one that does not.

use super::*;
use crate::layers::{Answer, Call, Layer, Next, wrap};
use crate::name::Name;
use crate::store::{Page, Reply, Store};
use crate::stores::Memory;

fn report() -> Report {
    let mut report = Report::new("redis", "host:6379");
    report.promise(Promise::Usable, true, "", None);
    report.promise(Promise::Restart, true, "", None);
    report.promise(Promise::PowerLoss, false, "appendfsync is everysec", Some("set it to always".to_owned()));
    report.promise(Promise::Failover, false, "", None);
    report.promise(Promise::NoEviction, true, "", None);
    report.promise(Promise::Tokens, true, "", None);
    report
}

#[test]
fn what_may_be_trusted_is_said_plainly() {
    let mut report = report();
    let fences = "Use tokens and fences for work that must be right even then, or when a holder is paused.";
    let said = "Locks here survive a restart, not a power loss or the loss of its machine.";
    assert_eq!(report.trust(), format!("{said} {fences}"));
    report.promise(Promise::PowerLoss, true, "", None);
    report.promise(Promise::Failover, true, "", None);
    let said = "Locks here survive a restart, a power loss and the loss of its machine.";
    assert_eq!(report.trust(), format!("{said} {fences}"));
    for promise in [Promise::Restart, Promise::PowerLoss, Promise::Failover] {
        report.promise(promise, false, "", None);
    }
    let said = "Locks here do not survive a restart, a power loss or the loss of its machine.";
    assert_eq!(report.trust(), format!("{said} {fences}"));
    report.promise(Promise::Restart, Kept::Unknown, "", None);
    report.promise(Promise::NoEviction, false, "", None);
    let said = "Locks here do not survive a power loss or the loss of its machine. Whether they survive a restart could \
        not be seen: do not count on it. Any of them may be thrown away when memory is short.";
    assert_eq!(report.trust(), format!("{said} {fences}"));
    report.promise(Promise::Usable, false, "it is a replica", None);
    assert_eq!(report.trust(), "Locks cannot be used here: it is a replica.");
}

#[test]
fn what_is_not_known_is_not_promised() {
    let report = report();
    let asked = ["restart", "power-loss", "push"].map(|text| text.parse().unwrap());
    let unmet = report.unmet(&asked);
    let missing: Vec<String> = unmet.iter().map(|unmet| unmet.requirement.to_string()).collect();
    assert_eq!(missing, ["power-loss", "push"]);
    assert_eq!(unmet[0].change.as_deref(), Some("set it to always"));
    assert_eq!(report.kept(Promise::Push), Kept::Unknown);
}

#[test]
fn levels_can_be_required() {
    let mut report = report();
    let asked = [Requirement::NoDanger, Requirement::NoWarning];
    assert!(report.unmet(&asked).is_empty());
    report.find(Finding::good("role", "primary"));
    report.find(Finding::new("memory", Level::Note, "no limit", ""));
    assert!(report.unmet(&asked).is_empty());
    report.find(Finding::new("clock", Level::Warning, "it is slow", "leases are long").with_change("see to it"));
    let [unmet] = &report.unmet(&asked)[..] else { panic!("one") };
    assert_eq!((unmet.requirement, unmet.why.as_str()), (Requirement::NoWarning, "warning: clock: it is slow"));
    report.find(Finding::new("eviction", Level::Danger, "allkeys-lru", "locks vanish"));
    let report = report.sorted();
    assert_eq!(report.worst(), Level::Danger);
    let levels: Vec<&str> = report.findings.iter().map(|finding| finding.level.as_str()).collect();
    assert_eq!(levels, ["danger", "warning", "note", "good"]);
    let unmet = report.unmet(&asked);
    assert_eq!(unmet.len(), 2);
    assert_eq!(unmet[1].why, "danger: eviction: allkeys-lru, and 1 more");
}

#[test]
fn requirements_are_written_as_they_are_read() {
    for name in Requirement::names() {
        assert_eq!(name.parse::<Requirement>().unwrap().to_string(), name);
    }
    let error = "quorum".parse::<Requirement>().unwrap_err();
    assert!(error.to_string().contains("`quorum`") && error.hint().unwrap().contains("power-loss"));
}

#[tokio::test]
async fn a_store_that_works_passes_the_trial() {
    let store = Memory::shared();
    let name = Name::new("doctor/1").unwrap();
    let trial = trial(&*store, &name).await.unwrap();
    let (first, second) = trial.tokens.unwrap();
    assert!(first < second);
    assert!(store.inspect(Page::of(&name)).await.unwrap().is_empty(), "nothing is left");
}

/// A store whose user may not renew.
#[derive(Debug)]
struct NoRenewals;

impl Layer for NoRenewals {
    fn around<'a>(&'a self, call: Call<'a>, next: Next<'a>) -> Reply<'a, Answer> {
        match call {
            Call::Renew { .. } => {
                let denied = Error::new(crate::ErrorKind::Denied, "not allowed").with_hint("allow it");
                Box::pin(async move { Err(denied) })
            }
            _ => Box::pin(async move { next.run(call).await }),
        }
    }
}

#[tokio::test]
async fn a_step_that_fails_is_named_and_leaves_nothing() {
    let store = wrap(Memory::shared(), NoRenewals);
    let name = Name::new("doctor/1").unwrap();
    let error = trial(&*store, &name).await.unwrap_err();
    assert_eq!((error.to_string().as_str(), error.hint()), ("renewing a lock failed: not allowed", Some("allow it")));
    assert!(store.inspect(Page::of(&name)).await.unwrap().is_empty());
}
