//! The arithmetic of figures, pure: medians, quantiles, a bootstrap with a fixed seed, and the order of slices.
//!
//! Surprise: the bootstrap is the same on every machine and in every run, because its randomness is a fixed
//! sequence. Two people who look at one file of results get one interval.

/// How often the bootstrap draws.
const DRAWS: usize = 10_000;

/// The middle of the values; the mean of the two middle ones if their number is even. `NaN` for none.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    median_of_sorted(&sorted)
}

fn median_of_sorted(sorted: &[f64]) -> f64 {
    let half = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => sorted[half],
        _ => f64::midpoint(sorted[half - 1], sorted[half]),
    }
}

/// The value that a share of `q` of the values does not exceed (nearest rank). `NaN` for none.
pub fn quantile(values: &[f64], q: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    if sorted.is_empty() {
        return f64::NAN;
    }
    let rank = (q * sorted.len() as f64).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1]
}

/// A range of values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

impl Interval {
    /// Does it lie within one, give or take `slack`?
    pub fn is_about_one(self, slack: f64) -> bool {
        self.low >= 1.0 - slack && self.high <= 1.0 + slack
    }
}

/// The 95 % interval of the median, by drawing samples of the same size from the values again and again.
pub fn interval_of_median(values: &[f64]) -> Interval {
    if values.is_empty() {
        return Interval { low: f64::NAN, high: f64::NAN };
    }
    let mut random = SplitMix(0x6c6f_636b_6b65_6570);
    let mut sample = vec![0.0; values.len()];
    let medians: Vec<f64> = (0..DRAWS)
        .map(|_| {
            sample.fill_with(|| values[random.below(values.len())]);
            sample.sort_by(f64::total_cmp);
            median_of_sorted(&sample)
        })
        .collect();
    Interval { low: quantile(&medians, 0.025), high: quantile(&medians, 0.975) }
}

/// SplitMix64: a known small generator, here so that no dependency can change the draws.
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, each as likely as the others but for one part in 2^32.
    fn below(&mut self, end: usize) -> usize {
        (((self.next() >> 32) * end as u64) >> 32) as usize
    }
}

/// One of the two things compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The one the figure is about.
    A,
    /// The one it is measured against.
    B,
}

/// In which order the two slices of a pair run: AB, BA, AB, BA… so that a drift of the machine favours neither.
pub fn order(pair: usize) -> [Side; 2] {
    if pair.is_multiple_of(2) { [Side::A, Side::B] } else { [Side::B, Side::A] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), 2.5);
        assert_eq!(median(&[7.0]), 7.0);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn quantiles_are_values_that_occurred() {
        let hundred: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!(quantile(&hundred, 0.5), 50.0);
        assert_eq!(quantile(&hundred, 0.99), 99.0);
        assert_eq!(quantile(&hundred, 1.0), 100.0);
        assert_eq!(quantile(&hundred, 0.0), 1.0);
        assert!(quantile(&[], 0.5).is_nan());
    }

    #[test]
    fn the_interval_holds_the_median_and_is_the_same_every_time() {
        let values: Vec<f64> = (0..30).map(|step| 0.9 + f64::from(step * 7 % 30) * 0.005).collect();
        let interval = interval_of_median(&values);
        assert!(interval.low <= median(&values) && median(&values) <= interval.high);
        assert!(interval.low > 0.9 && interval.high < 1.05, "{interval:?}");
        assert_eq!(interval, interval_of_median(&values));
    }

    #[test]
    fn equal_values_leave_no_doubt_and_one_outlier_little() {
        assert_eq!(interval_of_median(&[2.0; 30]), Interval { low: 2.0, high: 2.0 });
        let mut values = [1.0; 30];
        values[17] = 50.0;
        assert_eq!(interval_of_median(&values), Interval { low: 1.0, high: 1.0 });
        assert!(interval_of_median(&values).is_about_one(0.1));
    }

    #[test]
    fn about_one_looks_at_both_ends() {
        assert!(Interval { low: 0.91, high: 1.09 }.is_about_one(0.1));
        assert!(!Interval { low: 0.89, high: 1.0 }.is_about_one(0.1));
        assert!(!Interval { low: 1.0, high: 1.11 }.is_about_one(0.1));
        assert!(!Interval { low: f64::NAN, high: f64::NAN }.is_about_one(0.1));
    }

    #[test]
    fn draws_are_spread_over_all_values() {
        let mut random = SplitMix(1);
        let mut seen = [0_u32; 7];
        for _ in 0..7_000 {
            seen[random.below(7)] += 1;
        }
        assert!(seen.iter().all(|count| (800..1_200).contains(count)), "{seen:?}");
    }

    #[test]
    fn slices_run_in_the_order_abba() {
        let four: Vec<Side> = (0..4).flat_map(order).collect();
        assert_eq!(four, [Side::A, Side::B, Side::B, Side::A, Side::A, Side::B, Side::B, Side::A]);
    }
}
