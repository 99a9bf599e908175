//! How full the members are, and what the cluster complains of.

use lockkeeper_core::checkup::{Finding, Level, Report};

use super::seen::Seen;
use crate::proto::cluster::Alarm;

/// What a member may hold if nothing else is asked for.
const USUAL_QUOTA: u64 = 2 << 30;
/// From this share of the quota on, in percent, there is little room.
const CROWDED: u64 = 80;
/// A file smaller than this is not worth tidying.
const SMALL: u64 = 100 << 20;
/// From so many changes on, one that was never compacted is slower for it.
const MANY_CHANGES: i64 = 20_000;

/// Facts and findings about space and alarms.
pub(super) fn tell(seen: &Seen, report: &mut Report) {
    alarms(seen, report);
    let mut largest = 0;
    let mut calm = true;
    for (place, status) in seen.statuses() {
        let size = u64::try_from(status.db_size).unwrap_or(0);
        let used = u64::try_from(status.db_size_in_use).unwrap_or(0);
        let told = place.metrics.as_ref().and_then(|metrics| metrics.quota).filter(|quota| *quota > 0.0);
        let quota = told.map_or(USUAL_QUOTA, |quota| quota as u64);
        largest = largest.max(size);
        let (at, size_mib, quota_mib) = (&place.endpoint, size >> 20, quota >> 20);
        if size / 100 >= quota / 100 * CROWDED / 100 {
            calm = false;
            let usual = if told.is_none() { ", the usual one" } else { "" };
            let found = format!("{at} has {size_mib} MiB of a quota of {quota_mib} MiB{usual}");
            let means =
                "when it is reached, the cluster takes no more keys: what is held goes on, but no lock can be taken";
            let change = "compact (`--auto-compaction-retention`), `etcdctl defrag`, or raise `--quota-backend-bytes`";
            report.find(Finding::new("space", Level::Warning, found, means).with_change(change));
        } else if size >= SMALL && used < size / 2 {
            calm = false;
            let found = format!("{at} uses {} of the {size_mib} MiB of its file", used >> 20);
            let means = "the rest counts against the quota all the same";
            let change = format!("`etcdctl --endpoints={at} defrag`, one member after the other, the leader last");
            report.find(Finding::new("space", Level::Note, found, means).with_change(change));
        }
    }
    report.fact("size", format!("{} MiB at most", largest >> 20));
    if calm {
        report.find(Finding::good("space", "there is room"));
    }
    compaction(seen, report);
}

fn compaction(seen: &Seen, report: &mut Report) {
    let changes = seen.statuses().filter_map(|(_, status)| Some(status.header?.revision)).max().unwrap_or(0);
    if seen.compacted == Some(false) && changes >= MANY_CHANGES {
        let found = format!("it was never compacted, in {changes} changes");
        let means =
            "every lock and release is a change that is kept until then, and names that many processes take get slower";
        let change =
            "let members compact by themselves: `--auto-compaction-mode=periodic --auto-compaction-retention=5m`";
        report.find(Finding::new("compaction", Level::Warning, found, means).with_change(change));
    }
}

fn alarms(seen: &Seen, report: &mut Report) {
    let Some(alarms) = &seen.alarms else {
        let means = "a cluster that is full or damaged would say so there";
        return report.find(Finding::new("alarms", Level::Note, "they could not be asked for", means));
    };
    if alarms.contains(&Alarm::NoSpace) {
        let means = "no key is taken until somebody makes room: what is held goes on, but no lock can be taken";
        let change = "compact, `etcdctl defrag` every member, then `etcdctl alarm disarm`";
        report.find(Finding::new("alarms", Level::Danger, "NOSPACE: the quota is used up", means).with_change(change));
    }
    if alarms.contains(&Alarm::Corrupt) {
        let means = "members that disagree may give one lock twice";
        let change = "stop using it, and rebuild the members that differ (`etcdctl endpoint hashkv --cluster`)";
        let finding = Finding::new("alarms", Level::Danger, "CORRUPT: members disagree about the data", means);
        report.find(finding.with_change(change));
    }
    if alarms.is_empty() {
        report.find(Finding::good("alarms", "there are none"));
    }
}

#[cfg(test)]
mod tests {
    use super::super::metrics::Metrics;
    use super::super::seen::Said;
    use super::*;
    use crate::doctor::tests::{cluster, levels};
    use crate::proto::ResponseHeader;

    fn sized(size: i64, used: i64, quota: Option<f64>) -> Vec<Level> {
        let mut seen = cluster(1);
        if let Said::Status(status) = &mut seen.places[0].said {
            (status.db_size, status.db_size_in_use) = (size, used);
        }
        seen.places[0].metrics = Some(Metrics { quota, ..Metrics::default() });
        levels(|report| tell(&seen, report))
    }

    #[test]
    fn room_is_judged_by_the_quota() {
        let [mib, gib] = [1 << 20, 1 << 30];
        assert_eq!(sized(mib, mib, None), [Level::Good, Level::Good]);
        assert_eq!(sized(gib, gib, None), [Level::Good, Level::Good]);
        assert_eq!(sized(2 * gib - mib, gib, None), [Level::Good, Level::Warning]);
        assert_eq!(sized(2 * gib - mib, 2 * gib - mib, Some(8.0 * gib as f64)), [Level::Good, Level::Good]);
        assert_eq!(sized(gib, 10 * mib, None), [Level::Good, Level::Note], "much of it is free");
        assert_eq!(sized(90 * mib, mib, Some(100.0 * mib as f64)), [Level::Good, Level::Warning]);
        assert_eq!(sized(-1, i64::MIN, Some(f64::MAX)), [Level::Good, Level::Good]);
    }

    #[test]
    fn what_was_never_compacted_is_told_once_it_matters() {
        let told = |compacted, revision| {
            let mut seen = Seen { compacted, ..cluster(1) };
            if let Said::Status(status) = &mut seen.places[0].said {
                status.header = status.header.map(|header| ResponseHeader { revision, ..header });
            }
            levels(|report| tell(&seen, report)).len() == 3
        };
        assert!(told(Some(false), MANY_CHANGES));
        assert!(!told(Some(false), MANY_CHANGES - 1) && !told(Some(true), i64::MAX) && !told(None, i64::MAX));
    }

    #[test]
    fn alarms_are_dangers() {
        for alarm in [Alarm::NoSpace, Alarm::Corrupt] {
            let seen = Seen { alarms: Some(vec![alarm]), ..cluster(3) };
            assert_eq!(levels(|report| tell(&seen, report)), [Level::Danger, Level::Good]);
        }
        let seen = Seen { alarms: None, ..cluster(3) };
        assert_eq!(levels(|report| tell(&seen, report)), [Level::Note, Level::Good]);
    }
}
