//! How fast the server answers, what keeps it, and whether its clock can be leaned on.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use lockkeeper_core::checkup::{Finding, Level, Report};
use lockkeeper_core::{Result, limits};

use super::seen::{Seen, Slow};
use super::visit::Visit;
use crate::fast::time_us;

const PINGS: usize = 200;
/// A server that is far away is not asked for longer than this.
const PINGS_TAKE: Duration = Duration::from_secs(3);
/// A lease this many round trips long leaves time to try a renewal again.
const TRIPS_PER_LEASE: u32 = 20;
/// The lease of those who ask for none.
const USUAL_LEASE: Duration = Duration::from_secs(30);
/// How far clocks may be apart before it is worth a word.
const APART: Duration = Duration::from_secs(1);
/// A command this slow is noted, and one this slow is warned of: nobody else is answered meanwhile.
const SLOW: Duration = Duration::from_millis(100);
const VERY_SLOW: Duration = Duration::from_secs(1);

/// What was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Measured {
    pub(crate) pings: usize,
    pub(crate) p50: Duration,
    pub(crate) p99: Duration,
    /// The server's clock minus ours, in µs.
    pub(crate) ahead_us: i64,
    /// How far its clock went, and ours, between two looks.
    pub(crate) its: i64,
    pub(crate) ours: i64,
    /// By how much the two looks themselves may be off: the answers were on the way for longer than that.
    pub(crate) blur: i64,
}

/// Sends pings one after the other, between two looks at the clock; `None` if we may not do that.
pub(crate) async fn measure(visit: &Visit) -> Result<Option<Measured>> {
    let Some(first) = clock(visit).await? else { return Ok(None) };
    let mut took = Vec::with_capacity(PINGS);
    let begun = Instant::now();
    while took.len() < PINGS && begun.elapsed() < PINGS_TAKE {
        let asked = Instant::now();
        if visit.ask(&redis::cmd("PING")).await?.value().is_none() {
            return Ok(None);
        }
        took.push(asked.elapsed());
    }
    let Some(last) = clock(visit).await? else { return Ok(None) };
    Ok(Some(between(&first, &last, took)))
}

fn between(first: &Look, last: &Look, mut took: Vec<Duration>) -> Measured {
    took.sort_unstable();
    Measured {
        pings: took.len(),
        p50: share(&took, 50),
        p99: share(&took, 99),
        ahead_us: first.its - first.wall,
        its: last.its - first.its,
        ours: micros(last.at - first.at),
        blur: first.blur + last.blur,
    }
}

/// What two looks at a clock that said this would be worth, for the fuzz targets.
pub(crate) fn of_two_looks(clock_us: [u64; 2]) -> Measured {
    let at = Instant::now();
    let look = |us: u64, later: Duration| {
        let its = i64::try_from(us).unwrap_or(i64::MAX);
        Look { its, wall: 1_700_000_000_000_000, at: at + later, blur: 50 }
    };
    let (first, last) = (look(clock_us[0], Duration::ZERO), look(clock_us[1], Duration::from_millis(20)));
    between(&first, &last, vec![Duration::from_micros(100)])
}

/// One look at the server's clock: it, and ours in the middle of the question, in µs.
struct Look {
    its: i64,
    wall: i64,
    at: Instant,
    blur: i64,
}

async fn clock(visit: &Visit) -> Result<Option<Look>> {
    let (asked, wall) = (Instant::now(), SystemTime::now());
    let Some(time) = visit.ask(&redis::cmd("TIME")).await?.value() else { return Ok(None) };
    let half = asked.elapsed() / 2;
    let wall = micros((wall + half).duration_since(UNIX_EPOCH).unwrap_or_default());
    let its = i64::try_from(time_us(time)?).unwrap_or(i64::MAX);
    Ok(Some(Look { its, wall, at: asked + half, blur: micros(half) }))
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

/// The duration that so many percent do not exceed.
fn share(sorted: &[Duration], percent: usize) -> Duration {
    let at = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(at).copied().unwrap_or_default()
}

/// Facts and findings about speed and clock; false if its clock cannot be leaned on.
pub(crate) fn tell(seen: &Seen, measured: Option<Measured>, report: &mut Report) -> bool {
    slow(seen, report);
    let Some(measured) = measured else { return true };
    latency(measured, report);
    self::clock_of(measured, report)
}

fn latency(measured: Measured, report: &mut Report) {
    let Measured { pings, p50, p99, .. } = measured;
    let shortest = (p99 * TRIPS_PER_LEASE).max(limits::LEASE_MIN);
    let value = format!("p50 {}, p99 {} ({pings} pings)", ms(p50), ms(p99));
    report.fact("latency", value);
    let found = format!("99 of 100 answers come within {}", ms(p99));
    let lease = format!("leases from {} on leave time to renew", ms(shortest));
    if shortest > USUAL_LEASE {
        let means = format!("the usual lease of {} is too short here: {lease}", ms(USUAL_LEASE));
        let change = "use a server that is nearer, or longer leases";
        report.find(Finding::new("latency", Level::Warning, found, means).with_change(change));
    } else if shortest > Duration::from_secs(1) {
        report.find(Finding::new("latency", Level::Note, found, lease));
    } else {
        report.find(Finding::good("latency", format!("{found}: {lease}")));
    }
}

fn clock_of(measured: Measured, report: &mut Report) -> bool {
    let Measured { ahead_us, its, ours, blur, .. } = measured;
    let apart = Duration::from_micros(ahead_us.unsigned_abs());
    let side = if ahead_us < 0 { "behind" } else { "ahead of" };
    report.fact("clock", format!("{} {side} this host's", ms(apart)));
    // Beyond what the looks may be off by: a tenth, for clocks that are being slewed.
    let off = its.saturating_sub(ours).saturating_abs();
    if its < -blur || (its <= 0 && ours > blur) || off > blur + 20_000 + ours / 10 {
        let found = format!("it went {} ms while this host's went {} ms", its / 1_000, ours / 1_000);
        let means = "leases end by this clock: a step ahead frees locks while their holders work, one back keeps them";
        let change = "see to the server's time service; let it slew, not step";
        report.find(Finding::new("clock", Level::Danger, found, means).with_change(change));
        return false;
    }
    if apart > APART {
        let found = format!("it is {} {side} this host's", ms(apart));
        let means = "leases do not depend on that; tokens rise by the server's clock, so after a loss of data it must not \
            be behind";
        report.find(Finding::new("clock", Level::Note, found, means).with_change("let both follow a time service"));
    } else {
        report.find(Finding::good("clock", "it moves on as this host's does"));
    }
    true
}

fn slow(seen: &Seen, report: &mut Report) {
    let threshold = seen.config.number("busy-reply-threshold").or_else(|| seen.config.number("lua-time-limit"));
    if let Some(0) = threshold {
        let means = "a script that does not end stops the server for everybody, and cannot be ended";
        let finding = Finding::new("scripts", Level::Note, "scripts may run without a limit", means);
        report.find(finding.with_change("set `busy-reply-threshold 5000`"));
    }
    let Some(Some(Slow { command, micros })) = &seen.slow else { return };
    let time = Duration::from_micros(*micros);
    let level = match time {
        time if time >= VERY_SLOW => Level::Warning,
        time if time >= SLOW => Level::Note,
        _ => return,
    };
    let found = format!("a {command} took {}", ms(time));
    let means = "nobody is answered meanwhile: renewals are late, and leases shorter than that may end";
    let change = "see `SLOWLOG GET` there; keep slow commands away from the server of the locks";
    report.find(Finding::new("slow commands", level, found, means).with_change(change));
}

/// A duration as operators read it.
pub(crate) fn ms(time: Duration) -> String {
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

    const FINE: Measured = Measured {
        pings: 200,
        p50: Duration::from_micros(50),
        p99: Duration::from_micros(120),
        ahead_us: -300,
        its: 20_100,
        ours: 20_000,
        blur: 100,
    };

    fn told(measured: Measured) -> (bool, Vec<(&'static str, Level)>) {
        let mut report = Report::new("redis", "");
        let leans = tell(&Seen::default(), Some(measured), &mut report);
        (leans, report.findings.iter().map(|finding| (finding.topic, finding.level)).collect())
    }

    #[test]
    fn the_shortest_sensible_lease_follows_the_latency() {
        assert_eq!(told(FINE), (true, vec![("latency", Level::Good), ("clock", Level::Good)]));
        let far = Measured { p99: Duration::from_millis(80), ..FINE };
        assert_eq!(told(far).1[0], ("latency", Level::Note));
        let further = Measured { p99: Duration::from_secs(2), ..FINE };
        assert_eq!(told(further).1[0], ("latency", Level::Warning));
        let mut report = Report::new("redis", "");
        latency(far, &mut report);
        assert_eq!(report.facts[0].value, "p50 0.05 ms, p99 80 ms (200 pings)");
        assert_eq!(report.findings[0].means, "leases from 1600 ms on leave time to renew");
    }

    #[test]
    fn a_clock_must_move_on() {
        for (its, ours) in [(0, 20_000), (-5_000, 20_000), (1_020_000, 20_000), (20_000, 500_000)] {
            let (leans, findings) = told(Measured { its, ours, ..FINE });
            assert!(!leans && findings[1] == ("clock", Level::Danger), "{its} {ours}");
        }
        let busy = Measured { its: 420_000, ours: 20_000, blur: 500_000, ..FINE };
        assert!(told(busy).0, "the machine was busy, not the clock wrong");
        let apart = Measured { ahead_us: 4_000_000, ..FINE };
        assert_eq!(told(apart), (true, vec![("latency", Level::Good), ("clock", Level::Note)]));
    }

    #[test]
    fn slow_commands_are_told_by_name() {
        let with = |micros: u64| {
            let slow = Some(Some(Slow { command: "KEYS".to_owned(), micros }));
            let mut report = Report::new("redis", "");
            tell(&Seen { slow, ..Seen::default() }, None, &mut report);
            report.findings.first().map(|finding| (finding.level, finding.found.clone()))
        };
        assert_eq!(with(90_000), None);
        assert_eq!(with(150_000), Some((Level::Note, "a KEYS took 150 ms".to_owned())));
        assert_eq!(with(2_500_000), Some((Level::Warning, "a KEYS took 2500 ms".to_owned())));
    }

    #[test]
    fn shares_of_few_and_many() {
        let took: Vec<Duration> = (1..=200).map(Duration::from_millis).collect();
        assert_eq!((share(&took, 50), share(&took, 99)), (Duration::from_millis(100), Duration::from_millis(198)));
        assert_eq!((share(&took[..1], 99), share(&[], 50)), (Duration::from_millis(1), Duration::ZERO));
    }
}
