//! How great a share may be lost, with 95 % confidence, when so many of so many were seen to be: Clopper and Pearson's exact
//! upper bound.
//!
//! Surprise: none lost of a thousand does not say "none"; it says "hardly more than three in a thousand".

/// The share that is not exceeded, with 95 % confidence: the one at which so few would be seen one time in twenty.
pub(super) fn at_most(lost: u64, of: u64) -> f64 {
    if lost >= of {
        return 1.0;
    }
    let (mut low, mut high) = (lost as f64 / of as f64, 1.0);
    // Each step halves what is left of an interval below 1: after 100 nothing is.
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        // Seeing more than `lost` is the same as the beta distribution being below the share.
        if beta_below(middle, lost as f64 + 1.0, (of - lost) as f64) < 0.95 {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// The regularised incomplete beta function, by its continued fraction (Lentz's way of evaluating it).
fn beta_below(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (-x).ln_1p()).exp();
    // The fraction converges fast on this side of the mean only.
    if x < (a + 1.0) / (a + b + 2.0) {
        front * fraction(x, a, b) / a
    } else {
        1.0 - front * fraction(1.0 - x, b, a) / b
    }
}

fn fraction(x: f64, a: f64, b: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let away_from_zero = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut result = d;
    // It takes about as many steps as the root of the greater parameter.
    for step in 1..100_000 {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut change = 1.0;
        for term in [even, odd] {
            d = 1.0 / away_from_zero(1.0 + term * d);
            c = away_from_zero(1.0 + term / c);
            change = c * d;
            result *= change;
        }
        if (change - 1.0).abs() < 1e-15 {
            break;
        }
    }
    result
}

/// The logarithm of the gamma function, by Lanczos' approximation (g = 7, nine terms), good to about 15 digits.
fn ln_gamma(x: f64) -> f64 {
    const TERMS: [f64; 8] = [
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    let x = x - 1.0;
    let series =
        TERMS.iter().zip(1_u32..).fold(0.999_999_999_999_809_9, |sum, (term, i)| sum + term / (x + f64::from(i)));
    let t = x + 7.5;
    0.5 * (2.0 * std::f64::consts::PI).ln() + (x + 0.5) * t.ln() - t + series.ln()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn close(found: f64, known: f64) -> bool {
        (found - known).abs() <= 1e-6 * known
    }

    /// From the plain sum of the distribution, taken to sixty digits elsewhere.
    #[test]
    fn known_values() {
        for (lost, of, known) in [
            (0, 1, 0.95),
            (0, 10, 0.258_865_550_9),
            (0, 1_000, 0.002_991_249_5),
            (1, 10, 0.394_163_302_4),
            (5, 10, 0.777_558_899_0),
            (9, 10, 0.994_883_803_1),
            (3, 5_000, 0.001_549_994_3),
            (10, 1_000, 0.016_903_175_1),
        ] {
            assert!((at_most(lost, of) - known).abs() < 1e-10, "{lost} of {of}: {} is not {known}", at_most(lost, of));
        }
    }

    #[test]
    fn the_ends_are_safe() {
        assert_eq!((at_most(0, 0), at_most(7, 7), at_most(9, 7)), (1.0, 1.0, 1.0));
        let many = at_most(500_000, 1_000_000);
        assert!((0.5..0.501).contains(&many), "{many}");
        assert!(at_most(0, u64::MAX) < 1e-15);
    }

    /// The plain sum of the binomial distribution, good for small numbers.
    fn at_most_so_many(k: u64, n: u64, p: f64) -> f64 {
        let mut term = (1.0 - p).powi(n as i32);
        let mut sum = term;
        for i in 0..k {
            term *= (n - i) as f64 / (i + 1) as f64 * p / (1.0 - p);
            sum += term;
        }
        sum
    }

    proptest! {
        #[test]
        fn none_lost_has_a_formula(of in 1_u64..1_000_000) {
            prop_assert!(close(at_most(0, of), -(0.05_f64.ln() / of as f64).exp_m1()));
        }

        #[test]
        fn the_bound_is_where_so_few_are_rare(of in 2_u64..120, share in 0.0_f64..1.0) {
            let lost = ((of - 1) as f64 * share) as u64;
            let tail = at_most_so_many(lost, of, at_most(lost, of));
            prop_assert!((tail - 0.05).abs() < 1e-6, "{} of {}: {}", lost, of, tail);
        }
    }
}
