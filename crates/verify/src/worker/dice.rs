//! What is drawn by lot, drawn again the same from the same seed.

use crate::history::Life;

/// The dice of one task.
pub(super) fn dice(seed: u64, life: Life, task: u32) -> fastrand::Rng {
    let mut mixed = seed;
    for part in [life.worker, life.life, task] {
        mixed = mix(mixed.wrapping_add(u64::from(part)));
    }
    fastrand::Rng::with_seed(mixed)
}

/// A step of splitmix64: neighbours among seeds, workers and tasks have nothing in common after it.
fn mix(seed: u64) -> u64 {
    let mut mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_draws_the_same_and_every_task_its_own() {
        let draw = |worker, life, task| dice(7, Life { worker, life }, task).u64(..);
        assert_eq!(draw(1, 2, 3), draw(1, 2, 3));
        let all = [draw(0, 0, 0), draw(1, 0, 0), draw(0, 1, 0), draw(0, 0, 1), draw(1, 1, 1)];
        let distinct: std::collections::BTreeSet<u64> = all.into_iter().collect();
        assert_eq!(distinct.len(), all.len());
    }
}
