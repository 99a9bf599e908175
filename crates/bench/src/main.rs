//! Figures: ratios against the raw limit.

fn main() {}
