//! One distributed lock over the stores people already run.
