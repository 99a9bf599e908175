//! What a member counts, of which it says nothing in its own protocol: whether it syncs its disk, its quota, and how often
//! the leader changed.
//!
//! Surprise: this is plain HTTP on the port of the clients, and may be switched off there. What cannot be read is unknown.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::options::{Endpoint, Options};
use crate::wire;

/// More than this is not read.
const AT_MOST: u64 = 4 << 20;
/// A member that applies so many changes and syncs nothing does not sync. Its log is synced once when it is made, always.
const ENOUGH: f64 = 10.0;

/// The counts that matter here.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Metrics {
    /// How often its log was synced to disk since it started.
    pub(super) syncs: Option<f64>,
    /// How many changes it has applied since it started.
    pub(super) applied: Option<f64>,
    /// How large its file may become, in bytes.
    pub(super) quota: Option<f64>,
    /// How many leaders it has seen since it started.
    pub(super) leaders: Option<f64>,
}

impl Metrics {
    /// Did it sync its log for what it applied between this and a later count? `None` if there was too little of it.
    pub(super) fn syncs_until(&self, later: &Self) -> Option<bool> {
        let (synced, applied) = (later.syncs? - self.syncs?, later.applied? - self.applied?);
        match synced > 0.0 {
            true => Some(true),
            // What was applied now may have been synced just before.
            false => (applied >= ENOUGH).then_some(false),
        }
    }

    pub(super) fn of(text: &str) -> Option<Self> {
        let mut metrics = Self::default();
        for line in text.lines() {
            let Some((name, value)) = line.rsplit_once(' ') else { continue };
            let place = match name {
                "etcd_disk_wal_fsync_duration_seconds_count" => &mut metrics.syncs,
                "etcd_server_proposals_applied_total" => &mut metrics.applied,
                "etcd_server_quota_backend_bytes" => &mut metrics.quota,
                "etcd_server_leader_changes_seen_total" => &mut metrics.leaders,
                _ => continue,
            };
            *place = value.parse().ok().filter(|value: &f64| value.is_finite() && *value >= 0.0);
        }
        (metrics != Self::default()).then_some(metrics)
    }
}

/// Reads a member's counts; `None` if it does not tell them.
pub(super) async fn look(options: &Options, endpoint: &Endpoint) -> Option<Metrics> {
    let reading = async {
        let mut stream = wire::connect(endpoint, options.tls.as_ref(), &[], &wire::Said::default()).await.ok()?;
        let question = format!("GET /metrics HTTP/1.0\r\nHost: {endpoint}\r\nConnection: close\r\n\r\n");
        stream.write_all(question.as_bytes()).await.ok()?;
        let mut heard = Vec::new();
        // A connection that is closed without a word at its end has said all the same.
        let _ = stream.take(AT_MOST).read_to_end(&mut heard).await;
        Metrics::of(&String::from_utf8_lossy(&heard))
    };
    tokio::time::timeout(options.timeout, reading).await.ok()?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_picked_out() {
        let text = "HTTP/1.0 200 OK\r\n\r\n# HELP x y\netcd_disk_wal_fsync_duration_seconds_count 5\n\
            etcd_server_proposals_applied_total 12\n\
            etcd_server_quota_backend_bytes 2.147483648e+09\netcd_server_leader_changes_seen_total 1\nother 3\n";
        let metrics = Metrics::of(text).unwrap();
        assert_eq!((metrics.syncs, metrics.quota, metrics.leaders), (Some(5.0), Some(2_147_483_648.0), Some(1.0)));
        for odd in ["", "HTTP/1.0 404 Not Found\r\n\r\n404", "etcd_server_quota_backend_bytes NaN"] {
            assert_eq!(Metrics::of(odd), None, "{odd}");
        }
    }

    #[test]
    fn syncing_is_seen_by_what_is_counted_meanwhile() {
        let counts = |syncs, applied| Metrics { syncs: Some(syncs), applied: Some(applied), ..Metrics::default() };
        let before = counts(2.0, 4.0);
        assert_eq!(before.syncs_until(&counts(9.0, 40.0)), Some(true));
        assert_eq!(before.syncs_until(&counts(2.0, 40.0)), Some(false));
        assert_eq!(before.syncs_until(&counts(2.0, 5.0)), None, "too little");
        assert_eq!(before.syncs_until(&counts(0.0, 1.0)), None, "it was restarted");
        assert_eq!(before.syncs_until(&Metrics::default()), None);
    }
}
