//! Clusters as they could be, for the judges of this folder.

use lockkeeper_core::checkup::{Level, Report};

use super::seen::{Place, Said, Seen};
use crate::options::{Endpoint, Options};
use crate::proto::ResponseHeader;
use crate::proto::cluster::{Member, StatusResponse};

/// A cluster of so many members, all named, all well; the first leads.
pub(super) fn cluster(members: usize) -> Seen {
    let port = |at: usize| 2379 + u16::try_from(at).unwrap();
    let id = |at: usize| at as u64 + 1;
    let place = |at: usize| Place {
        endpoint: Endpoint { host: "127.0.0.1".to_owned(), port: port(at) },
        named: true,
        said: Said::Status(StatusResponse {
            header: Some(ResponseHeader { cluster_id: 9, member_id: id(at), revision: 40, raft_term: 4 }),
            version: "3.6.1".to_owned(),
            db_size: 1 << 20,
            leader: 1,
            raft_index: 100,
            raft_term: 4,
            raft_applied_index: 100,
            errors: Vec::new(),
            db_size_in_use: 1 << 19,
            is_learner: false,
        }),
        metrics: Some(super::metrics::Metrics { leaders: Some(1.0), ..Default::default() }),
        syncs: Some(true),
    };
    let member = |at: usize| Member {
        id: id(at),
        name: format!("member-{at}"),
        peer_urls: Vec::new(),
        client_urls: vec![format!("http://127.0.0.1:{}", port(at))],
        is_learner: false,
    };
    Seen {
        places: (0..members).map(place).collect(),
        members: Some((0..members).map(member).collect()),
        alarms: Some(Vec::new()),
        compacted: Some(true),
        terms: (4, 4),
    }
}

/// The options that name all of it.
pub(super) fn options_of(seen: &Seen) -> Options {
    Options::at(seen.places.iter().map(|place| place.endpoint.clone()).collect())
}

/// The levels of what is found, in order.
pub(super) fn levels(tell: impl FnOnce(&mut Report)) -> Vec<Level> {
    let mut report = Report::new("etcd", "");
    tell(&mut report);
    report.findings.iter().map(|finding| finding.level).collect()
}
