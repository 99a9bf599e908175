//! How long a write and a read that a majority has confirmed take, and how short a lease can be.

use std::time::{Duration, Instant};

use lockkeeper_core::checkup::{Finding, Level, Report};

use super::trials::SHORTEST;
use crate::link::Link;
use crate::options::Options;
use crate::proto::{RangeResponse, TxnResponse, path};
use crate::store::LATE;
use crate::txn;

const ROUNDS: usize = 20;
/// A cluster that is far away is not asked for longer than this.
const ROUNDS_TAKE: Duration = Duration::from_secs(3);
/// A write this slow is noted, and one this slow is warned of.
const SLOW: Duration = Duration::from_millis(50);
const VERY_SLOW: Duration = Duration::from_millis(500);

/// What was measured: the median and the longest.
#[derive(Debug, Clone, Copy)]
pub(super) struct Speed {
    pub(super) write: (Duration, Duration),
    pub(super) read: (Duration, Duration),
}

/// Writes a key on a lease and reads it, in turn; `None` if it did not go well.
pub(super) async fn measure(link: &Link, key: &[u8], lease: i64) -> Option<Speed> {
    let (mut writes, mut reads) = (Vec::new(), Vec::new());
    let begun = Instant::now();
    while writes.len() < ROUNDS && begun.elapsed() < ROUNDS_TAKE {
        let put = txn::txn(Vec::new(), vec![txn::put(key, Vec::new(), lease)], Vec::new());
        let asked = Instant::now();
        link.ask::<_, TxnResponse>(path::TXN, &put).await.ok()?;
        writes.push(asked.elapsed());
        let asked = Instant::now();
        link.ask::<_, RangeResponse>(path::RANGE, &txn::get(key)).await.ok()?;
        reads.push(asked.elapsed());
    }
    Some(Speed { write: of(writes)?, read: of(reads)? })
}

fn of(mut took: Vec<Duration>) -> Option<(Duration, Duration)> {
    took.sort_unstable();
    Some((*took.get(took.len() / 2)?, *took.last()?))
}

/// Facts and findings about latency.
pub(super) fn tell(speed: Option<&Speed>, report: &mut Report) {
    let Some(Speed { write, read }) = speed else {
        return report.fact("latency", "could not be measured");
    };
    let shown = |(middle, longest): &(Duration, Duration)| format!("{} (at most {})", ms(*middle), ms(*longest));
    report.fact("latency", format!("write {}, read {}", shown(write), shown(read)));
    let level = match write.0 {
        time if time >= VERY_SLOW => Level::Warning,
        time if time >= SLOW => Level::Note,
        _ => return report.find(Finding::good("latency", format!("a write takes {}", ms(write.0)))),
    };
    let found = format!("a write takes {}", ms(write.0));
    let means = "every lock and release takes at least that, and short leases leave little time to renew";
    let change = "look at the disks of the members (a write waits for a majority's), and how far apart they are";
    report.find(Finding::new("latency", level, found, means).with_change(change));
}

/// Facts and findings about the shortest lease.
pub(super) fn tell_lease(options: &Options, shortest: Option<Duration>, report: &mut Report) {
    let Some(given) = shortest else {
        return report.fact("lease", "could not be tried");
    };
    let late = given + LATE;
    report
        .fact("lease", format!("{} s for {} s; free {} s after a kill at the latest", s(given), s(SHORTEST), s(late)));
    if given <= SHORTEST {
        let found = format!("a lease of {} s is one of {} s", s(SHORTEST), s(given));
        return report.find(Finding::good("lease", found));
    }
    let found = format!("no lease is shorter than {} s here", s(given));
    let means = "its members wait long for an election: what a dead holder held is free no sooner";
    let level = if given > options.lease { Level::Warning } else { Level::Note };
    let change = "lower `--election-timeout` of the members, or take longer leases and know it";
    report.find(Finding::new("lease", level, found, means).with_change(change));
}

fn s(time: Duration) -> u64 {
    time.as_secs()
}

/// A duration as operators read it.
pub(super) fn ms(time: Duration) -> String {
    let us = time.as_micros();
    match us {
        0..10_000 => format!("{}.{:02} ms", us / 1_000, us % 1_000 / 10),
        10_000..10_000_000 => format!("{} ms", us / 1_000),
        _ => format!("{} s", us / 1_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::tests::levels;

    #[test]
    fn slow_writes_are_told() {
        let told = |write: u64| {
            let both = (Duration::from_millis(write), Duration::from_secs(1));
            levels(|report| tell(Some(&Speed { write: both, read: both }), report))
        };
        assert_eq!((told(2), told(60), told(700)), (vec![Level::Good], vec![Level::Note], vec![Level::Warning]));
        assert_eq!(levels(|report| tell(None, report)), []);
        assert_eq!(
            of((1..=9).map(Duration::from_millis).collect()),
            Some((Duration::from_millis(5), Duration::from_millis(9)))
        );
        assert_eq!(of(Vec::new()), None);
    }

    #[test]
    fn a_server_may_give_more_than_it_is_asked_for() {
        let told = |given: u64| {
            levels(|report| tell_lease(&Options::at(Vec::new()), Some(Duration::from_secs(given)), report))
        };
        assert_eq!((told(2), told(8), told(45)), (vec![Level::Good], vec![Level::Note], vec![Level::Warning]));
    }
}
