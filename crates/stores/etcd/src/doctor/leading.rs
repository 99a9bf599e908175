//! Who leads, whether all say the same, and how far behind the others are.

use lockkeeper_core::checkup::{Finding, Level, Promise, Report};

use super::seen::Seen;

/// A member this many entries behind is noted; one this many refuses to take part.
const BEHIND: u64 = 500;
const FAR_BEHIND: u64 = 5_000;
/// More changes of the leader than this since a member started are worth a word.
const CHANGES: f64 = 20.0;

/// Facts, findings and promises about the leader.
pub(super) fn tell(seen: &Seen, report: &mut Report) {
    let mut leaders: Vec<u64> = seen.statuses().map(|(_, status)| status.leader).collect();
    leaders.sort_unstable();
    leaders.dedup();
    match leaders[..] {
        [] => return report.promise(Promise::WritablePrimary, false, "nobody answered", None),
        [0] => return nobody(report),
        [leader] => {
            let at = seen.statuses().find(|(place, _)| place.member() == Some(leader));
            let at = at.map_or_else(|| "which was not reached".to_owned(), |(place, _)| place.endpoint.to_string());
            report.fact("leader", format!("{leader:x}, {at}, term {}", seen.terms.0));
            report.find(Finding::good("leader", "all who were reached say that the same one leads"));
        }
        _ => {
            report.fact("leader", "they do not say the same");
            let means =
                "an election is under way, or some are cut off from the rest: locks may be late until it is over";
            let finding = Finding::new("leader", Level::Warning, "members name different leaders, or none", means);
            report.find(finding.with_change("ask again; if it stays so, look at the network between the members"));
        }
    }
    report.promise(Promise::WritablePrimary, true, "whoever is asked, the leader and a majority decide", None);
    changes(seen, report);
    lag(seen, report);
}

fn nobody(report: &mut Report) {
    let found = "there is no leader";
    report.fact("leader", "none");
    let means = "no lock can be taken, renewed or released; what is held is not given to others";
    let change = "more than half of the members must be up and see each other";
    report.find(Finding::new("leader", Level::Danger, found, means).with_change(change));
    report.promise(Promise::WritablePrimary, false, found, Some(change.to_owned()));
}

fn changes(seen: &Seen, report: &mut Report) {
    let change = "look at the disks and the network of the members; raise `--election-timeout` if they are far apart";
    let means = "each time, locks stand still for an election, and all leases begin anew: a dead holder's stay longer";
    let (before, after) = seen.terms;
    if after > before {
        let found = format!("the leader changed while this was looked at (term {before} to {after})");
        report.find(Finding::new("leader", Level::Warning, found, means).with_change(change));
    }
    let leaders = seen.places.iter().filter_map(|place| place.metrics.as_ref()?.leaders);
    if let Some(most) = leaders.max_by(f64::total_cmp).filter(|most| *most > CHANGES) {
        let found = format!("a member has seen {most} leaders since it started");
        report.find(Finding::new("leader", Level::Note, found, means).with_change(change));
    }
}

fn lag(seen: &Seen, report: &mut Report) {
    let last = seen.statuses().map(|(_, status)| status.raft_index).max().unwrap_or(0);
    let behind = seen.statuses().map(|(place, status)| (last.saturating_sub(status.raft_applied_index), place));
    let Some((entries, place)) = behind.max_by_key(|(entries, _)| *entries) else { return };
    report.fact("lag", format!("{entries} entries at most"));
    let level = match entries {
        FAR_BEHIND.. => Level::Warning,
        BEHIND.. => Level::Note,
        _ => return report.find(Finding::good("lag", "no member is far behind")),
    };
    let found = format!("{} is {entries} entries behind", place.endpoint);
    let means = format!("questions put to it wait until it has caught up; from {FAR_BEHIND} on it refuses them");
    report.find(Finding::new("lag", level, found, means).with_change("look at its disk and its load"));
}

#[cfg(test)]
mod tests {
    use lockkeeper_core::checkup::Kept;

    use super::super::metrics::Metrics;
    use super::super::seen::Said;
    use super::*;
    use crate::doctor::tests::{cluster, levels};
    use crate::proto::cluster::StatusResponse;

    fn with(seen: &mut Seen, at: usize, change: impl FnOnce(&mut StatusResponse)) {
        if let Said::Status(status) = &mut seen.places[at].said {
            change(status);
        }
    }

    #[test]
    fn all_must_name_the_same_leader() {
        assert_eq!(levels(|report| tell(&cluster(3), report)), [Level::Good, Level::Good]);
        let mut seen = cluster(3);
        with(&mut seen, 1, |status| status.leader = 2);
        assert_eq!(levels(|report| tell(&seen, report)), [Level::Warning, Level::Good]);
        for at in 0..3 {
            with(&mut seen, at, |status| status.leader = 0);
        }
        let mut report = Report::new("etcd", "");
        tell(&seen, &mut report);
        assert_eq!((report.worst(), report.kept(Promise::WritablePrimary)), (Level::Danger, Kept::No));
    }

    #[test]
    fn leaders_that_change_are_told() {
        let seen = Seen { terms: (4, 5), ..cluster(3) };
        assert_eq!(levels(|report| tell(&seen, report)), [Level::Good, Level::Warning, Level::Good]);
        let mut seen = cluster(3);
        seen.places[2].metrics = Some(Metrics { leaders: Some(30.0), ..Metrics::default() });
        assert_eq!(levels(|report| tell(&seen, report)), [Level::Good, Level::Note, Level::Good]);
    }

    #[test]
    fn those_behind_are_told() {
        let lags = |applied: u64| {
            let mut seen = cluster(3);
            with(&mut seen, 0, |status| status.raft_index = 9_000);
            for at in 0..3 {
                with(&mut seen, at, |status| status.raft_applied_index = 9_000);
            }
            with(&mut seen, 2, |status| status.raft_applied_index = applied);
            levels(|report| tell(&seen, report))[1]
        };
        assert_eq!((lags(8_900), lags(8_000), lags(3_000)), (Level::Good, Level::Note, Level::Warning));
    }
}
