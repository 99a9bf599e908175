//! Two things against each other, in slices that take turns within one run.
//!
//! A ratio of two numbers measured one after the other says more about the machine's mood than about the code. Here
//! short slices alternate (ABBA), every pair gives one ratio, and the median of those is the figure. The same number
//! of pairs of the baseline against itself (A/A) stands between them: what it strays from one is the error of the
//! method. Surprises: pairs in which the host of this machine took processor time away are repeated, not averaged. And while
//! A/A strays too far, as much again is measured, a few times: whether it does, and not what came out, decides that.

use std::time::Duration;

use crate::Outcome;
use crate::machine::Ticks;
use crate::stats::{Interval, Side, interval_of_median, median, order};

/// A pair with more steal than this in either slice is repeated.
const STEAL: f64 = 0.05;
/// How far the A/A interval may stray from one.
pub const NOISE: f64 = 0.1;
/// How often a record's pairs are measured at the most, until that is so.
const ROUNDS: usize = 4;

/// How much to measure.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// How many pairs of slices.
    pub pairs: usize,
    /// How long a slice is.
    pub slice: Duration,
    /// Fewer and shorter than a record needs.
    pub quick: bool,
}

impl Plan {
    /// What a record needs.
    pub const RECORD: Self = Self { pairs: 30, slice: Duration::from_millis(600), quick: false };
    /// Enough to see that everything works.
    pub const QUICK: Self = Self { pairs: 6, slice: Duration::from_millis(200), quick: true };
}

/// Something that can be run for a while and then says how it went.
pub trait Arm {
    /// Runs for about so long.
    fn run(&mut self, length: Duration) -> Outcome<Work>;
}

/// What was done in one slice.
#[derive(Debug, Clone, Copy)]
pub struct Work {
    /// What is compared: a rate or a latency.
    pub score: f64,
    /// How many operations it comes from.
    pub count: u64,
    /// Processor time of the client's processes.
    pub cpu: Duration,
    /// The 99th percentile, where the score is a latency.
    pub p99: Option<f64>,
}

/// One slice, with what the machine did meanwhile.
#[derive(Debug, Clone, Copy)]
pub struct Slice {
    /// What was done.
    pub work: Work,
    /// The share of time that was stolen.
    pub steal: f64,
}

impl Work {
    /// Processor time per operation, in microseconds.
    pub fn cpu_micros(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.count.max(1) as f64
    }
}

/// Two slices that ran one right after the other.
#[derive(Debug, Clone, Copy)]
pub struct Pair {
    /// The slice of what the figure is about.
    pub a: Slice,
    /// The slice of the baseline.
    pub b: Slice,
}

impl Pair {
    /// A over B.
    pub fn ratio(&self) -> f64 {
        self.a.work.score / self.b.work.score
    }

    fn is_disturbed(&self) -> bool {
        self.a.steal > STEAL || self.b.steal > STEAL
    }
}

/// All pairs of one comparison.
#[derive(Debug, Clone, Default)]
pub struct Pairs {
    /// Those that count.
    pub kept: Vec<Pair>,
    /// How many were repeated for steal.
    pub repeated: usize,
    /// How many count although there was steal, because there had been too many repetitions.
    pub disturbed: usize,
}

impl Pairs {
    /// The median of the ratios.
    pub fn ratio(&self) -> f64 {
        median(&self.ratios())
    }

    /// Its 95 % interval.
    pub fn interval(&self) -> Interval {
        interval_of_median(&self.ratios())
    }

    /// The ratio of every pair.
    pub fn ratios(&self) -> Vec<f64> {
        self.kept.iter().map(Pair::ratio).collect()
    }

    /// One number of every slice of a side.
    pub fn of(&self, side: Side, number: impl Fn(&Slice) -> f64) -> Vec<f64> {
        let slice = |pair: &Pair| if side == Side::A { pair.a } else { pair.b };
        self.kept.iter().map(|pair| number(&slice(pair))).collect()
    }

    /// The largest share of stolen time in a slice that counts.
    pub fn most_steal(&self) -> f64 {
        self.kept.iter().map(|pair| pair.a.steal.max(pair.b.steal)).fold(0.0, f64::max)
    }

    /// Takes a pair, or asks for it again while there is patience for that.
    fn take(&mut self, pair: Pair, patience: usize) -> bool {
        if pair.is_disturbed() {
            if self.repeated < patience {
                self.repeated += 1;
                return false;
            }
            self.disturbed += 1;
        }
        self.kept.push(pair);
        true
    }
}

/// What came of comparing two things.
#[derive(Debug, Default)]
pub struct Comparison {
    /// Ours against the baseline.
    pub main: Pairs,
    /// The baseline against itself.
    pub same: Pairs,
}

/// Compares `ours` with `base`, and `base` with itself, all slices taking turns.
pub fn compare(ours: &mut dyn Arm, base: &mut dyn Arm, plan: Plan) -> Outcome<Comparison> {
    // The first slice of anything pays for cold caches and new files.
    ours.run(plan.slice)?;
    base.run(plan.slice)?;
    let mut all = Comparison::default();
    for round in 1..=ROUNDS {
        for pair in 0..plan.pairs {
            while !all.main.take(run_pair(pair, ours, base, plan.slice)?, round * plan.pairs) {}
            while !all.same.take(run_same(pair, base, plan.slice)?, round * plan.pairs) {}
        }
        if plan.quick || all.same.interval().is_about_one(NOISE) {
            break;
        }
    }
    Ok(all)
}

/// The same for something that is told beside a comparison with the same baseline: fewer pairs, and the A/A row of that
/// comparison, which was measured in the same run.
pub fn compare_beside(
    beside: &Comparison,
    theirs: &mut dyn Arm,
    base: &mut dyn Arm,
    plan: Plan,
) -> Outcome<Comparison> {
    theirs.run(plan.slice)?;
    let mut main = Pairs::default();
    let pairs = (plan.pairs / 4).max(3);
    for pair in 0..pairs {
        while !main.take(run_pair(pair, theirs, base, plan.slice)?, pairs) {}
    }
    Ok(Comparison { main, same: beside.same.clone() })
}

fn run_pair(pair: usize, ours: &mut dyn Arm, base: &mut dyn Arm, length: Duration) -> Outcome<Pair> {
    let mut slice = |side| run(if side == Side::A { &mut *ours } else { &mut *base }, length);
    let [first, second] = order(pair);
    Ok(assemble(order(pair), [slice(first)?, slice(second)?]))
}

fn run_same(pair: usize, base: &mut dyn Arm, length: Duration) -> Outcome<Pair> {
    Ok(assemble(order(pair), [run(base, length)?, run(base, length)?]))
}

fn assemble(order: [Side; 2], [first, second]: [Slice; 2]) -> Pair {
    if order[0] == Side::A { Pair { a: first, b: second } } else { Pair { a: second, b: first } }
}

fn run(arm: &mut dyn Arm, length: Duration) -> Outcome<Slice> {
    let before = Ticks::now();
    let work = arm.run(length)?;
    if work.count == 0 || !work.score.is_finite() {
        return Err("a slice came to nothing".into());
    }
    Ok(Slice { work, steal: Ticks::now().stolen_since(before) })
}

/// What a figure must reach.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bar {
    /// At least so much.
    AtLeast(f64),
    /// At most so much.
    AtMost(f64),
}

impl Bar {
    /// Why it is not met; `None` if it is.
    pub fn missed(self, ratio: f64, noise: Interval) -> Option<String> {
        let reached = match self {
            Self::AtLeast(bar) => ratio >= bar,
            Self::AtMost(bar) => ratio <= bar,
        };
        if !reached {
            return Some(format!("the median {ratio:.2} × is not {self}"));
        }
        if noise.is_about_one(NOISE) {
            return None;
        }
        Some(format!("the machine was too restless: A/A {:.2}–{:.2} is beyond ±10 %", noise.low, noise.high))
    }
}

impl std::fmt::Display for Bar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::AtLeast(bar) => write!(f, "≥ {bar} ×"),
            Self::AtMost(bar) => write!(f, "≤ {bar} ×"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Steady(f64, Vec<&'static str>, &'static str);

    impl Arm for Steady {
        fn run(&mut self, _length: Duration) -> Outcome<Work> {
            self.1.push(self.2);
            Ok(Work { score: self.0, count: 10, cpu: Duration::from_micros(50), p99: None })
        }
    }

    #[test]
    fn a_comparison_is_the_median_of_its_pairs() {
        let (mut ours, mut base) = (Steady(80.0, Vec::new(), "ours"), Steady(100.0, Vec::new(), "base"));
        let plan = Plan { pairs: 4, slice: Duration::ZERO, quick: true };
        let came = compare(&mut ours, &mut base, plan).unwrap();
        assert_eq!((came.main.ratio(), came.same.ratio()), (0.8, 1.0));
        assert_eq!(
            (ours.1.len() - 1, base.1.len() - 1),
            (4 + came.main.repeated, 12 + came.main.repeated + 2 * came.same.repeated)
        );
        assert_eq!(came.main.of(Side::A, |slice| slice.work.cpu_micros()), vec![5.0; 4]);
    }

    /// Says one number, then the other, and so on.
    struct Fickle([f64; 2]);

    impl Arm for Fickle {
        fn run(&mut self, _length: Duration) -> Outcome<Work> {
            self.0.reverse();
            Ok(Work { score: self.0[0], count: 10, cpu: Duration::ZERO, p99: None })
        }
    }

    #[test]
    fn on_a_restless_machine_more_is_measured_but_not_for_ever() {
        let plan = Plan { pairs: 4, slice: Duration::ZERO, quick: false };
        let steady = || Steady(1.0, Vec::new(), "");
        let count = |base: &mut dyn Arm, plan| compare(&mut steady(), base, plan).unwrap().main.kept.len();
        assert_eq!(count(&mut steady(), plan), 4);
        assert_eq!(count(&mut Fickle([1.0, 3.0]), plan), 4 * ROUNDS);
        assert_eq!(count(&mut Fickle([1.0, 3.0]), Plan { quick: true, ..plan }), 4);
    }

    fn pair(steal: f64) -> Pair {
        let work = Work { score: 1.0, count: 1, cpu: Duration::ZERO, p99: None };
        Pair { a: Slice { work, steal: 0.0 }, b: Slice { work, steal } }
    }

    #[test]
    fn stolen_time_is_measured_again_but_not_for_ever() {
        let mut pairs = Pairs::default();
        assert!(pairs.take(pair(0.05), 2));
        assert!(!pairs.take(pair(0.06), 2) && !pairs.take(pair(0.5), 2));
        assert!(pairs.take(pair(0.5), 2));
        assert_eq!((pairs.kept.len(), pairs.repeated, pairs.disturbed), (2, 2, 1));
        assert_eq!(pairs.most_steal(), 0.5);
    }

    #[test]
    fn a_bar_needs_a_quiet_machine() {
        let (quiet, restless) = (Interval { low: 0.98, high: 1.02 }, Interval { low: 0.8, high: 1.02 });
        assert_eq!(Bar::AtLeast(0.8).missed(0.8, quiet), None);
        assert!(Bar::AtLeast(0.8).missed(0.79, quiet).unwrap().contains("≥ 0.8"));
        assert!(Bar::AtLeast(0.8).missed(0.9, restless).unwrap().contains("restless"));
        assert_eq!(Bar::AtMost(3.0).missed(2.9, quiet), None);
        assert!(Bar::AtMost(3.0).missed(3.1, quiet).is_some());
        assert!(Bar::AtMost(3.0).missed(f64::NAN, quiet).is_some());
    }
}
