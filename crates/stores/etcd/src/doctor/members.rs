//! Who belongs to the cluster, who of them answers, and whether the next loss can be borne.

use lockkeeper_core::checkup::{Finding, Level, Promise, Report};

use super::seen::{Place, Said, Seen};
use super::server;
use crate::options::Options;
use crate::proto::cluster::Member;

const TOPIC: &str = "members";

/// Facts, findings and promises about members.
pub(super) fn tell(options: &Options, seen: &Seen, report: &mut Report) {
    report.promise(Promise::NoEviction, true, "nothing is thrown away: a store that is full refuses instead", None);
    one_cluster(seen, report);
    silent(seen, report);
    let Some(members) = &seen.members else {
        report.fact(
            TOPIC,
            format!("{} are named; who belongs to the cluster could not be seen", options.endpoints.len()),
        );
        report.promise(
            Promise::Failover,
            lockkeeper_core::checkup::Kept::Unknown,
            "who belongs to it was not told",
            None,
        );
        return keeping(seen, 1, report);
    };
    let voters: Vec<&Member> = members.iter().filter(|member| !member.is_learner).collect();
    let reached = voters.iter().filter(|member| seen.reaches(member)).count();
    let learners = members.len() - voters.len();
    let beside = if learners > 0 { format!(", {learners} that only learn") } else { String::new() };
    report.fact(TOPIC, format!("{} with a vote, {reached} of them reached{beside}", voters.len()));
    votes(voters.len(), reached, report);
    named(seen, members, report);
    keeping(seen, voters.len(), report);
}

/// All that were named must be of one cluster.
fn one_cluster(seen: &Seen, report: &mut Report) {
    let mut ids: Vec<u64> = seen.statuses().filter_map(|(_, status)| Some(status.header?.cluster_id)).collect();
    ids.sort_unstable();
    ids.dedup();
    if ids.len() > 1 {
        let found = format!("the servers that are named belong to {} clusters", ids.len());
        let means = "two who ask two of them both get the lock";
        let change = "name members of one cluster only; `etcdctl member list` says who they are";
        report.find(Finding::new(TOPIC, Level::Danger, found, means).with_change(change));
    }
}

fn silent(seen: &Seen, report: &mut Report) {
    for place in &seen.places {
        match &place.said {
            Said::Silent(why) => {
                let means = "others answer for it; while it is away there is one less to lose";
                let finding = Finding::new(TOPIC, Level::Warning, why.clone(), means);
                report.find(finding.with_change("bring it back; if it is no longer a member, take it out of the URL"));
            }
            Said::Refused(why) => {
                let found = format!("{} does not say how it is: {why}", place.endpoint);
                report.find(Finding::new(TOPIC, Level::Note, found, "what hangs on it is not known here"));
            }
            Said::Status(_) => {}
        }
    }
}

/// Whether the cluster can bear a loss.
fn votes(voters: usize, reached: usize, report: &mut Report) {
    let majority = voters / 2 + 1;
    let lose = reached.saturating_sub(majority);
    if voters < 3 {
        let (found, means) = match voters {
            0 => ("no member with a vote is told of", "who decides is not known, nor what may be lost"),
            1 => ("one member", "locks survive its restart, not its loss: with its disk all of them are gone"),
            _ => {
                ("two members with a vote", "either of them stops all locks when it goes: that is worse than one alone")
            }
        };
        let change = "run three members, or five, on machines that do not fail together";
        let level = if voters == 1 { Level::Note } else { Level::Warning };
        report.find(Finding::new(TOPIC, level, found, means).with_change(change));
        return report.promise(Promise::Failover, false, found, Some(change.to_owned()));
    }
    if voters.is_multiple_of(2) {
        let found = format!("{voters} members with a vote");
        let means = format!("they bear no more losses than {} do", voters - 1);
        let change = "an odd number is as safe and answers sooner";
        report.find(Finding::new(TOPIC, Level::Note, found, means).with_change(change));
    }
    if lose == 0 {
        let found = format!("{reached} of {voters} members with a vote are reached, and {majority} are needed");
        let means = "the next loss stops all locks until a member comes back; what is held is not given to others";
        let (level, means) = match reached < majority {
            true => (Level::Danger, "no lock can be taken, renewed or released from here"),
            false => (Level::Warning, means),
        };
        let change = "bring the others back";
        report.find(Finding::new(TOPIC, level, found.clone(), means).with_change(change));
        return report.promise(Promise::Failover, false, found, Some(change.to_owned()));
    }
    let found = format!("{reached} of {voters} members with a vote are reached; {lose} may be lost");
    report.find(Finding::good(TOPIC, found.clone()));
    report.promise(Promise::Failover, true, found, None);
}

/// Those that the options name, held against those that belong to it.
fn named(seen: &Seen, members: &[Member], report: &mut Report) {
    let named: Vec<&Place> = seen.places.iter().filter(|place| place.named).collect();
    for place in &named {
        let at = &place.endpoint;
        match members.iter().find(|member| place.is_of(member)) {
            None if place.status().is_some() => {
                let means = "it was removed, or belongs to another cluster: what it answers is not what the others say";
                let finding = Finding::new(TOPIC, Level::Warning, format!("{at} is named and is no member"), means);
                report.find(finding.with_change("take it out of the URL"));
            }
            Some(member) if member.is_learner => {
                let means = "it has no vote and answers no question about locks; asking it costs time";
                let finding = Finding::new(TOPIC, Level::Note, format!("{at} is named and only learns"), means);
                report.find(finding.with_change("take it out of the URL, or `etcdctl member promote` it"));
            }
            _ => {}
        }
    }
    let voters = || members.iter().filter(|member| !member.is_learner);
    let unnamed = voters().filter(|member| !named.iter().any(|place| place.is_of(member))).count();
    if unnamed > 0 {
        let found = format!("{unnamed} of {} members with a vote are not named", voters().count());
        let means = "a client that cannot reach those that are named has nobody to ask, though the cluster lives; where \
            one address stands for all of them, it must not be a single machine";
        let finding = Finding::new(TOPIC, Level::Note, found, means);
        report.find(finding.with_change("name all of them: `etcd://host1,host2,host3`"));
    }
}

/// What survives a restart and a power loss.
fn keeping(seen: &Seen, voters: usize, report: &mut Report) {
    let writes_first = server::writes_first(seen);
    let why = if writes_first { "members have their data after a restart" } else { "it answers before it has written" };
    report.promise(Promise::Restart, writes_first, why, None);
    let those = |wanted: bool| seen.places.iter().filter(|place| place.syncs == Some(wanted)).count();
    let (lazy, sure) = (those(false), those(true));
    report.fact(
        "disk",
        match (lazy, sure) {
            (0, 0) => "whether it is synced could not be seen".to_owned(),
            (0, _) => "synced before every answer".to_owned(),
            (lazy, _) => format!("not synced by {lazy} members"),
        },
    );
    if lazy > 0 {
        let found = format!("{lazy} members do not sync their disk (`--unsafe-no-fsync`)");
        let means = "a power loss may take locks that were answered: they may then be given twice, with the same token";
        let change = "take `unsafe-no-fsync` out of their configuration".to_owned();
        report.find(Finding::new("persistence", Level::Warning, found.clone(), means).with_change(change.clone()));
        return report.promise(Promise::PowerLoss, false, found, Some(change));
    }
    if !writes_first {
        return report.promise(Promise::PowerLoss, false, why, None);
    }
    if sure * 2 > voters {
        let found = "a majority has every answer on disk before it is given";
        report.find(Finding::good("persistence", found));
        return report.promise(Promise::PowerLoss, true, found, None);
    }
    let change = "let this client read `/metrics` on the port of the clients";
    let why = "whether members sync their disk could not be seen";
    let means = "members do unless they are told `--unsafe-no-fsync`; it is not promised here because it was not seen";
    report.find(Finding::new("persistence", Level::Note, why, means).with_change(change));
    report.promise(Promise::PowerLoss, lockkeeper_core::checkup::Kept::Unknown, why, Some(change.to_owned()));
}

#[cfg(test)]
mod tests {
    use lockkeeper_core::checkup::Kept;

    use super::*;
    use crate::doctor::tests::{cluster, options_of};

    fn told(seen: &Seen) -> Report {
        let mut report = Report::new("etcd", "");
        tell(&options_of(seen), seen, &mut report);
        report
    }

    fn lose(seen: &mut Seen, at: usize) {
        seen.places[at].said = Said::Silent("it could not be reached".to_owned());
    }

    #[test]
    fn what_can_be_lost_is_counted() {
        let failover = |seen: &Seen| {
            let report = told(seen);
            (report.kept(Promise::Failover), report.worst())
        };
        assert_eq!(failover(&cluster(1)), (Kept::No, Level::Note));
        assert_eq!(failover(&cluster(2)), (Kept::No, Level::Warning));
        assert_eq!(failover(&cluster(3)), (Kept::Yes, Level::Good));
        assert_eq!(failover(&cluster(4)), (Kept::Yes, Level::Note), "four are no better than three");
        assert_eq!(failover(&cluster(5)), (Kept::Yes, Level::Good));
        let mut seen = cluster(3);
        lose(&mut seen, 2);
        assert_eq!(failover(&seen), (Kept::No, Level::Warning), "one more is one too many");
        lose(&mut seen, 1);
        assert_eq!(failover(&seen), (Kept::No, Level::Danger));
        let mut seen = cluster(5);
        lose(&mut seen, 4);
        assert_eq!(failover(&seen), (Kept::Yes, Level::Warning), "it is away, but the next one may go");
        assert_eq!(told(&Seen { members: None, ..cluster(3) }).kept(Promise::Failover), Kept::Unknown);
        let nobody = told(&Seen { members: Some(Vec::new()), ..cluster(3) });
        assert_eq!(nobody.kept(Promise::Failover), Kept::No);
        assert_eq!(says(&nobody, "no member with a vote"), Some(Level::Warning));
    }

    fn says(report: &Report, words: &str) -> Option<Level> {
        report.findings.iter().find(|finding| finding.found.contains(words)).map(|finding| finding.level)
    }

    #[test]
    fn those_that_are_named_must_be_members_of_one_cluster() {
        let mut seen = cluster(3);
        if let Some(members) = &mut seen.members {
            members[2].id = 77;
            members[2].client_urls.clear();
        }
        assert_eq!(says(&told(&seen), "is no member"), Some(Level::Warning));
        let mut seen = cluster(3);
        if let Said::Status(status) = &mut seen.places[0].said {
            status.header = status.header.map(|header| crate::proto::ResponseHeader { cluster_id: 5, ..header });
        }
        assert_eq!(says(&told(&seen), "belong to 2 clusters"), Some(Level::Danger));
        let mut seen = cluster(3);
        seen.places.truncate(1);
        assert_eq!(says(&told(&seen), "2 of 3 members with a vote are not named"), Some(Level::Note));
        let mut seen = cluster(4);
        if let Some(members) = &mut seen.members {
            members[3].is_learner = true;
        }
        let report = told(&seen);
        assert_eq!(says(&report, "only learns"), Some(Level::Note));
        assert_eq!(report.kept(Promise::Failover), Kept::Yes);
        seen.places[0].said = Said::Refused("not allowed".to_owned());
        assert_eq!(says(&told(&seen), "does not say how it is"), Some(Level::Note));
    }

    #[test]
    fn what_a_power_loss_takes() {
        let kept = |syncs: [Option<bool>; 3]| {
            let mut seen = cluster(3);
            for (place, syncs) in seen.places.iter_mut().zip(syncs) {
                place.syncs = syncs;
            }
            told(&seen).kept(Promise::PowerLoss)
        };
        assert_eq!(kept([Some(true), Some(true), None]), Kept::Yes, "a majority");
        assert_eq!(kept([Some(true), None, None]), Kept::Unknown);
        assert_eq!(kept([Some(true), Some(false), Some(true)]), Kept::No);
    }
}
